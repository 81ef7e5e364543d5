"""What the scenarios need: a scripted model, a cutting proxy, the client, the server."""
