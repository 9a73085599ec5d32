"""What is wrong with a deployment on Kafka, as far as it can be seen from outside its processes."""
