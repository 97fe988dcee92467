//! Transport of commands over apus.

use std::path::Path;
use std::thread;

use apus::Endpoint;

use super::command::FileCommand;
use super::store::{Store, check};
use super::{Failure, Times};

/// Serves a folder and lets `push` send commands to the server. With `local` the endpoints use
/// shared memory.
pub(super) fn run(
    to: &Path,
    local: bool,
    push: impl FnOnce(&mut dyn FnMut(FileCommand) -> Result<(), Failure>) -> Result<Times, Failure>,
) -> Result<Times, Failure> {
    let server = Endpoint::builder().local(local).bind("127.0.0.1:0")?;
    let client = Endpoint::builder().local(local).client()?;
    let address = server.local_addr();
    thread::scope(|scope| {
        scope.spawn(|| serve(&server, &Store::at(to)));
        // Head and content are not joined: a message may consist of slices.
        let mut send = |command: FileCommand| {
            let reply = client.call(address, [command.head(), command.content])?;
            check(&reply)
        };
        let took = push(&mut send);
        server.shutdown();
        took
    })
}

/// Serves commands until the endpoint is shut down.
fn serve(server: &Endpoint, store: &Store) {
    while let Ok(request) = server.recv_request() {
        let reply = store.reply(request.payload());
        // Fails if the client has vanished.
        let _ = request.reply(reply);
    }
}
