"""`python -m apus`: a demo, and a simple server and client."""

import argparse
import json
import sys

from . import Endpoint, __version__, resolve
from .demo import demo


def main() -> int:
    """Runs the command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m apus", description="apus from Python")
    parser.add_argument("--version", action="version", version=f"apus {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("demo", help="apus beside TCP between two processes of this machine, in a few seconds")
    shown.add_argument("--seconds", type=float, default=1.0, help="time for each measurement (default: 1)")
    shown.add_argument("--size", type=int, default=100, help="bytes of each request and response (default: 100)")
    shown.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    serve = commands.add_parser("serve", help="answer each request with its own bytes")
    serve.add_argument("address", nargs="?", default="127.0.0.1:0", help="where to serve (default: %(default)s)")
    call = commands.add_parser("call", help="send a request, and print the response")
    call.add_argument("address", help="the server, such as 127.0.0.1:4000")
    call.add_argument("text", nargs="?", default="hello", help="the request (default: hello)")
    call.add_argument("--timeout", type=float, default=10.0, help="seconds (default: 10)")
    options = parser.parse_args()
    try:
        if options.command == "demo":
            if not options.seconds > 0 or options.size < 0:
                parser.error("--seconds is more than 0, and --size is 0 or more, such as --seconds 1 --size 100")
            result = demo(options.seconds, options.size)
            print(json.dumps(result) if options.json else result.table())
        elif options.command == "serve":
            with Endpoint.bind(options.address) as server:
                print(f"listening on {server.address}", flush=True)
                for request in server:
                    request.reply(request.payload)
        else:
            with Endpoint.client() as client:
                response = client.call(resolve(options.address), options.text.encode(), timeout=options.timeout)
                sys.stdout.buffer.write(bytes(response) + b"\n")
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
