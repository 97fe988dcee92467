//! A flood: first contacts in the name of very many hosts.

use crate::forger::{Forger, HEADERS};
use crate::namespace::{bytes_sent_outside, in_namespace};
use crate::packets::{Control, Envelope, accepting, first_contact, in_session};
use crate::recording_server::RecordingServer;
use crate::{CLIENT, address, endpoint, packets_read, wait_until_read};
use apus::DropReason;
use apus_wire::Role;
use std::net::SocketAddrV4;
use std::time::Duration;

const NAME: &str = "off_path::flood::first_contacts_of_unknown_clients_leave_nothing";
const BATCHES: usize = 200;
/// Packets between two honest calls. They fit into the socket.
const BATCH: usize = 50;

/// A packet of a host without state at the server. All of a batch have the same form: some belong
/// to calls that do not exist, most start a short or a long request.
fn forge(forger: &Forger, batch: usize, server: SocketAddrV4) -> usize {
    let from = forger.guess_address();
    let id = forger.guess() & !1;
    let fields = match batch % 3 {
        0 => first_contact(forger.guess()),
        1 => accepting(forger.guess(), forger.guess() as u32 >> 8),
        _ => in_session(forger.guess()),
    };
    let envelope = Envelope { from, to: server, sender: Role::Client, id, fields };
    let controls = Control::all();
    let packet = match controls.get(batch / 6) {
        Some(control) => {
            let sender = [Role::Client, Role::Server][batch / 3 % 2];
            Envelope { sender, ..envelope }.write(control)
        }
        None if batch.is_multiple_of(2) => envelope.first_of(50_000_000, &[7; 1_400]),
        None => envelope.data(b"?"),
    };
    forger.send(from, server, &packet);
    HEADERS + packet.len()
}

/// 10,000 of them leave no trace, honest clients are served during the flood, and an unproved
/// address is sent little.
#[test]
fn first_contacts_of_unknown_clients_leave_nothing() {
    in_namespace(NAME, || {
        let (server, forger) = (RecordingServer::start(), Forger::open());
        let to = address(&server.endpoint);
        let known = endpoint(CLIENT);
        known.call(to.into(), "known").unwrap();
        // All stay, so that none gets the port of another one.
        let mut new = Vec::new();
        for batch in 0..BATCHES {
            let (before, sent) = (packets_read(&server.endpoint), bytes_sent_outside());
            let received: usize = (0..BATCH).map(|_| forge(&forger, batch, to)).sum();
            wait_until_read(&server.endpoint, before, BATCH);
            known.call(to.into(), "honest").unwrap();
            new.push(endpoint(CLIENT));
            new[batch].call(to.into(), "honest").unwrap();
            let sent = bytes_sent_outside() - sent;
            assert!(sent <= 3 * received as u64, "{sent} bytes for {received} in batch {batch}");
        }
        assert!(bytes_sent_outside() > 0, "they were answered");
        for client in new.iter().chain([&known]) {
            assert!(client.drain(Duration::from_secs(60)));
        }
        let metrics = server.endpoint.metrics().protocol;
        let clients = 1 + BATCHES as u64;
        assert_eq!((metrics.live.peers, metrics.admission.sessions_begun), (clients, clients));
        assert_eq!((metrics.live.receive_bytes, metrics.live.incoming_bytes), (0, 0));
        let requests = (BATCHES - 6 * Control::all().len()) * BATCH;
        // BAD-10: on a busy machine the server is behind, and answers fewer.
        let unanswered = metrics.dropped(DropReason::Unanswered);
        let asked = metrics.admission.challenges_sent;
        assert!(asked + unanswered >= requests as u64 && asked > 0, "they were asked");
        assert_eq!(metrics.progress.server_requests_started, 1 + 2 * BATCHES as u64);
        assert_eq!(server.stop().len(), 1 + 2 * BATCHES, "requests of honest clients");
    });
}
