//! Calls in another host's name, and answers to its calls.

use crate::forger::Forger;
use crate::namespace::in_namespace;
use crate::packets::{Envelope, accepting, all_but, first_contact, in_session};
use crate::recording_server::RecordingServer;
use crate::witness::Witness;
use crate::{ATTACKER, CLIENT, SERVER, address, endpoint, packets_read, wait_until_read};
use apus::Endpoint;
use apus_wire::{Role, UdpFields};
use std::net::SocketAddrV4;

/// Requests that claim to be of the client: none is executed, and none silences the client, whose
/// calls are all below the lowest id that the requests declare alive.
#[test]
fn no_request_is_executed_in_anothers_name() {
    in_namespace("off_path::calls::no_request_is_executed_in_anothers_name", || {
        let (witness, forger) = (Witness::open(), Forger::open());
        let (server, client) = (RecordingServer::start(), endpoint(CLIENT));
        let (from, to) = (address(&client), address(&server.endpoint));
        let own = session_of_attacker(&witness, to);
        let forge = |fields: &[UdpFields]| {
            let before = packets_read(&server.endpoint);
            for fields in fields {
                // Above all ids of the client, so nothing below is alive.
                let (sender, id) = (Role::Client, u64::MAX / 2 - 1);
                let mut fields = *fields;
                if fields.low_water == UdpFields::LOW_WATER_UNKNOWN {
                    fields.low_water = 0;
                }
                let envelope = Envelope { from, to, sender, id, fields };
                forger.send(from, to, &envelope.data(b"forged"));
            }
            wait_until_read(&server.endpoint, before, fields.len());
        };

        // The server has no state for the client yet.
        forge(&[
            first_contact(1),
            accepting(own, 1),
            accepting(forger.guess() >> 2, 1),
            in_session(own),
        ]);
        client.call(to.into(), "1").unwrap();
        let session = witness.session(to, from);
        for fields in all_but(session).chunks(13) {
            forge(fields);
            let confirming = |fields: &UdpFields| accepting(fields.incarnation, 7);
            forge(&fields.iter().map(confirming).collect::<Vec<_>>());
        }
        client.call(to.into(), "2").unwrap();

        // The same packet works with the session.
        forge(&[in_session(session)]);
        assert_eq!(server.stop(), [&b"of the attacker"[..], b"1", b"2", b"forged"]);
    });
}

/// A session that the server has given the attacker, under its own name.
fn session_of_attacker(witness: &Witness, server: SocketAddrV4) -> u64 {
    let attacker = endpoint(ATTACKER);
    attacker.call(server.into(), "of the attacker").unwrap();
    witness.session(server, address(&attacker))
}

/// Responses that claim to be of the server: the call gets its own.
#[test]
fn no_response_is_taken_from_another() {
    in_namespace("off_path::calls::no_response_is_taken_from_another", || {
        let (witness, forger) = (Witness::open(), Forger::open());
        let (server, client) = (endpoint(SERVER), endpoint(CLIENT));
        let (from, to) = (address(&server), address(&client));
        let respond = |id: u64, fields: &[UdpFields]| {
            let before = packets_read(&client);
            for fields in fields {
                let envelope = Envelope { from, to, sender: Role::Server, id, fields: *fields };
                forger.send(from, to, &envelope.data(b"forged"));
            }
            wait_until_read(&client, before, fields.len());
        };
        let call = |before_reply: &dyn Fn(u64)| {
            client.send(server.local_addr(), "request", 0).unwrap();
            let request = server.recv_request().unwrap();
            before_reply(only_call(&client));
            let _ = request.reply("genuine");
            client.recv_completion().unwrap().result.unwrap()
        };

        assert_eq!(call(&|_| {}), "genuine");
        let session = witness.session(from, to);
        let response = call(&|id| {
            all_but(session).chunks(13).for_each(|fields| respond(id, fields));
        });
        assert_eq!(response, "genuine");
        // The same packet works with the session.
        assert_eq!(call(&|id| respond(id, &[in_session(session)])), "forged");
    });
}

/// The id of the only call of the endpoint.
pub(super) fn only_call(client: &Endpoint) -> u64 {
    let calls = client.info();
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls[0].id
}
