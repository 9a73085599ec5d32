"""The actors on Apache Kafka, hosted by Faust (`docs/design/kafka.md`)."""
