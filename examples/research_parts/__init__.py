"""What `agent_research.py` is made of: documents, models, and stand-ins for them."""
