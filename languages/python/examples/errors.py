"""Errors of calls state whether the request was executed."""

import apus

client = apus.Endpoint.client()
gone = apus.Endpoint.bind("127.0.0.1:0")
servers = [gone.address]
gone.close()
del gone

# [sample execution]
for server in servers:
    try:
        print(client.call(server, b"one coffee", timeout=0.5))
        break
    except apus.CallError as error:
        print(error)
        if error.execution is not apus.Execution.NOT_EXECUTED:
            raise                               # a second call may execute the request twice
        # The server has not executed the request and never will: call another one.
# [end]
