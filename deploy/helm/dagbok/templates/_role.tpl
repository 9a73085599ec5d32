{{/* A Deployment and its PodDisruptionBudget. Takes: root, component (its name), role, args, image, values (of the role). */}}
{{- define "dagbok.role" -}}
{{- $name := printf "%s-%s" (include "dagbok.name" .root) .component | trunc 63 | trimSuffix "-" -}}
{{- $values := merge (deepCopy .values) .root.Values.roleDefaults -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "dagbok.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "dagbok.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  # One more first: each pod that goes moves its partitions, and nobody else has to wait for the new one to start.
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata:
      labels:
        {{- include "dagbok.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        dagbok/role: {{ .role }}
      {{- with $values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "dagbok.name" .root }}
      automountServiceAccountToken: false
      # Kubernetes would make DAGBOK_… variables of the names of services.
      enableServiceLinks: false
      securityContext: {{- include "dagbok.podSecurity" .root | nindent 8 }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "dagbok.selector" $.root | nindent 14 }}
              app.kubernetes.io/component: {{ $.component }}
        {{- end }}
      {{- with pick $values "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
        - name: {{ .role }}
          image: {{ .image | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: {{ toJson (concat .args (list "--health-host" "0.0.0.0" "--health-port" (toString .root.Values.healthPort))) }}
          env:
            {{- include "dagbok.kafkaEnv" .root | nindent 12 }}
            {{- /* The secrets that a role needs, and no others. */}}
            {{- include (eq .role "projector" | ternary "dagbok.databaseEnv" "dagbok.artifactsEnv") .root | nindent 12 }}
            {{- range $variable, $value := $values.env }}
            - {name: {{ $variable }}, value: {{ $value | quote }}}
            {{- end }}
          {{- with $values.envFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: health, containerPort: {{ .root.Values.healthPort }}}
          # A role waits for its broker and its database: that takes as long as it takes, and restarts would not help.
          startupProbe: {httpGet: {path: /health/live, port: health}, periodSeconds: 2, failureThreshold: 60}
          livenessProbe: {httpGet: {path: /health/live, port: health}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3}
          readinessProbe: {httpGet: {path: /health/ready, port: health}, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2}
          resources: {{- toYaml $values.resources | nindent 12 }}
          securityContext: {{- include "dagbok.containerSecurity" .root | nindent 12 }}
          volumeMounts: {{- include "dagbok.mounts" .root | nindent 12 }}
      volumes: {{- include "dagbok.volumes" .root | nindent 8 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "dagbok.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- toYaml $values.disruptionBudget | nindent 2 }}
  selector:
    matchLabels:
      {{- include "dagbok.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
{{- end -}}
