"""Real servers for tests: Apache Kafka and PostgreSQL, found or started, and always stopped."""
