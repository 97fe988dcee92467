import apus

with apus.Endpoint.bind("127.0.0.1:4000") as server:
    print(server, flush=True)                   # its address and its state
    for request in server:                      # until the endpoint is closed
        with request:                           # unanswered at the end: its client gets an error
            try:
                request.reply(bytes(request.payload).upper())
            except apus.ClientGone:
                pass                            # no fault of the server
