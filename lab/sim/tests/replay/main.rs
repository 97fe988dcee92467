//! Replay of recorded conversations of the Linux module.
//!
//! Conversations between two Linux hosts are replayed from one host's side, packet by packet at
//! their times, and the core takes the other host's place: once as the server, once as the client.
//! Where the protocol leaves no choice, its packets are compared field by field with the module's
//! packets. All its packets are verified by the model of the module ([`apus_sim::kernel`]), and
//! every message must be delivered.
//!
//! The recordings are not part of the project. They are searched for in `$APUS_CAPTURES`, then in
//! `../shared/reference/captures` next to the workspace; without them the tests are skipped with a
//! message.

mod client;
mod core;
mod recording;
mod server;

use recording::recordings;

#[test]
fn in_the_servers_place() {
    for recording in recordings() {
        let messages = server::play(&recording);
        eprintln!("{}: {messages} requests served", recording.name);
        let no_server = recording.name == "closed-port";
        assert_eq!(messages == 0, no_server, "{}", recording.name);
    }
}

#[test]
fn in_the_clients_place() {
    for recording in recordings() {
        let done = client::play(&recording);
        eprintln!(
            "{}: {} calls, {} to a closed port",
            recording.name, done.responses, done.refused
        );
        let closed = recording.name == "closed-port";
        assert_eq!(done.refused > 0, closed, "{}", recording.name);
        // In W4 the first response was incomplete when the recording ended.
        let none = closed || recording.name == "w4";
        assert_eq!(done.responses == 0, none, "{}", recording.name);
    }
}
