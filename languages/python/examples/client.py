import apus

server = apus.resolve("localhost:4000")         # once: a name is not looked up in each call
with apus.Endpoint.client() as client:
    response = client.call(server, b"hello", timeout=0.5)
    print(str(response, "utf-8"))
