//! First contacts in a client's name, while it makes its own.

use crate::forger::Forger;
use crate::namespace::in_namespace;
use crate::packets::{Control, Envelope, accepting, first_contact};
use crate::recording_server::RecordingServer;
use crate::{CLIENT, address, endpoint, packets_read, wait_until_read};
use apus::Endpoint;
use apus_wire::{Kind, Role};
use std::sync::atomic::{AtomicBool, Ordering};

const NAME: &str = "off_path::first_contacts::a_forged_first_contact_keeps_no_client_away";
const CLIENTS: usize = 100;

/// First contacts in the client's name, and offers in the server's, before the client's first call
/// and while it waits.
#[test]
fn a_forged_first_contact_keeps_no_client_away() {
    in_namespace(NAME, || {
        let server = RecordingServer::start();
        for number in 0..CLIENTS {
            let client = endpoint(CLIENT);
            forge_first_contacts(&Forger::open(), &client, &server.endpoint);
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let forger = Forger::open();
                    while !over.load(Ordering::Relaxed) {
                        forge_first_contacts(&forger, &client, &server.endpoint);
                    }
                });
                let answer = client.call(server.endpoint.local_addr(), number.to_string());
                over.store(true, Ordering::Relaxed);
                assert_eq!(answer.unwrap(), number.to_string());
            });
            // A client that has to send a RESEND has waited for a resend interval.
            let metrics = client.metrics().protocol;
            assert_eq!((metrics.sent(Kind::Resend), metrics.admission.peers_restarted), (0, 0));
        }
        let metrics = server.endpoint.metrics().protocol;
        assert_eq!(metrics.admission.sessions_begun, CLIENTS as u64, "one for each client");
        let executed: Vec<Vec<u8>> = (0..CLIENTS).map(|n| n.to_string().into_bytes()).collect();
        assert_eq!(server.stop(), executed, "and nothing else");
    });
}

/// Packets about the call of the client, if it has one, and about another one.
fn forge_first_contacts(forger: &Forger, client: &Endpoint, server: &Endpoint) {
    let before = packets_read(server);
    let (at_client, at_server) = (address(client), address(server));
    let calls = client.info().into_iter().map(|call| call.id);
    let mut sent = 0;
    for id in calls.chain([forger.guess() & !1]) {
        let fields = first_contact(forger.guess());
        let request = Envelope { from: at_client, to: at_server, sender: Role::Client, id, fields };
        forger.send(at_client, at_server, &request.data(b"forged"));
        let fields = accepting(forger.guess(), forger.guess() as u32 >> 8);
        forger.send(at_client, at_server, &Envelope { fields, ..request }.data(b"forged"));
        let offer = Envelope { from: at_server, to: at_client, sender: Role::Server, id, fields };
        forger.send(at_server, at_client, &offer.write(&Control::OFFER));
        sent += 2;
    }
    // Otherwise the socket would overflow, which is another attack.
    wait_until_read(server, before, sent);
}
