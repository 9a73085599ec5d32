{{- define "dagbok.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "dagbok.image" -}}
{{- required "image.repository: where your build of deploy/Dockerfile lies" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{- define "dagbok.selector" -}}
app.kubernetes.io/name: dagbok
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dagbok.labels" -}}
{{ include "dagbok.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Secrets are named, never copied: no value of one passes through the chart. */}}
{{- define "dagbok.kafkaEnv" -}}
{{- with .Values.kafka -}}
- {name: DAGBOK_KAFKA_BOOTSTRAP_SERVERS, value: {{ required "kafka.bootstrapServers" .bootstrapServers | quote }}}
- {name: DAGBOK_KAFKA_PREFIX, value: {{ .prefix | quote }}}
- {name: DAGBOK_KAFKA_SECURITY_PROTOCOL, value: {{ .securityProtocol | quote }}}
{{- if hasPrefix "SASL" .securityProtocol }}
- {name: DAGBOK_KAFKA_SASL_MECHANISM, value: {{ .saslMechanism | quote }}}
{{- end }}
{{- with .credentialsSecret }}
- {name: DAGBOK_KAFKA_SASL_USERNAME, valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: username}}}
- {name: DAGBOK_KAFKA_SASL_PASSWORD, valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: password}}}
{{- end }}
{{- if .caSecret }}
- {name: DAGBOK_KAFKA_SSL_CA_FILE, value: /etc/dagbok/kafka/ca.crt}
{{- end }}
{{- if .clientSecret }}
- {name: DAGBOK_KAFKA_SSL_CERT_FILE, value: /etc/dagbok/kafka-client/tls.crt}
- {name: DAGBOK_KAFKA_SSL_KEY_FILE, value: /etc/dagbok/kafka-client/tls.key}
{{- end }}
{{- end }}
- {name: DAGBOK_LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
- {name: DAGBOK_LOG_FORMAT, value: json}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{- define "dagbok.databaseEnv" -}}
- {name: DAGBOK_DATABASE, valueFrom: {secretKeyRef: {name: {{ required "database.secret: a Secret with the URL" .Values.database.secret | quote }}, key: {{ .Values.database.key | quote }}}}}
{{- end -}}

{{- define "dagbok.artifactsEnv" -}}
- {name: DAGBOK_ARTIFACTS, value: {{ required "artifacts.url" .Values.artifacts.url | quote }}}
{{- range $name, $value := .Values.artifacts.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- with .Values.artifacts.credentialsSecret }}
- {name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: AWS_ACCESS_KEY_ID}}}
- {name: AWS_SECRET_ACCESS_KEY, valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: AWS_SECRET_ACCESS_KEY}}}
{{- end }}
{{- end -}}

{{- define "dagbok.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "dagbok.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "dagbok.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.kafka.caSecret }}
- {name: kafka-ca, mountPath: /etc/dagbok/kafka, readOnly: true}
{{- end }}
{{- if .Values.kafka.clientSecret }}
- {name: kafka-client, mountPath: /etc/dagbok/kafka-client, readOnly: true}
{{- end }}
{{- end -}}

{{- define "dagbok.volumes" -}}
- {name: tmp, emptyDir: {sizeLimit: 1Gi}}
{{- with .Values.kafka.caSecret }}
- {name: kafka-ca, secret: {secretName: {{ . | quote }}}}
{{- end }}
{{- with .Values.kafka.clientSecret }}
- {name: kafka-client, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- end -}}
