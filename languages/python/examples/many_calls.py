"""Many outstanding calls, whose completions are received in batches."""

import threading

import apus


def serve(server: apus.Endpoint) -> None:
    for request in server:
        request.reply(bytes(request.payload).upper())


server_endpoint = apus.Endpoint.bind("127.0.0.1:0")
serving = threading.Thread(target=serve, args=[server_endpoint])
serving.start()
server = server_endpoint.address
client = apus.Endpoint.client()

# [sample calls]
questions = [b"one", b"two", b"three"]
sent = client.send_many(server, questions)      # their cookies count from 0
while sent > 0:
    for completion in client.recv_completions(64):
        print(questions[completion.cookie], bytes(completion.result()))
        sent -= 1
# [end]

client.close()
server_endpoint.close()
serving.join()
