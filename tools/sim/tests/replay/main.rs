//! Does apus say what the Linux module says?
//!
//! Conversations between two Linux hosts are played to the core from one host's side, packet by packet at their
//! times, and the core takes the other one's place: once as the server, once as the client. Where the protocol
//! leaves no choice, what it says is compared field by field with what the module said; everything it says is
//! judged by the model of the module ([`apus_sim::kernel`]); and every message must be delivered.
//!
//! The recordings are not part of the project. They are looked for in `$APUS_CAPTURES`, then in
//! `../shared/reference/captures` beside the workspace; without them the tests say so and pass.

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
        let nobody_served = recording.name == "closed-port";
        assert_eq!(messages == 0, nobody_served, "{}", recording.name);
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
        // Of W4 the first response was still on its way when the recording ended.
        let none = closed || recording.name == "w4";
        assert_eq!(done.responses == 0, none, "{}", recording.name);
    }
}
