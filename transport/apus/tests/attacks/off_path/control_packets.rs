//! Control packets in the name of either end of a call.

use super::calls::only_call;
use crate::forger::Forger;
use crate::namespace::in_namespace;
use crate::packets::{Control, Envelope, FORGED_CUTOFFS, all_but, in_session};
use crate::witness::Witness;
use crate::{CLIENT, SERVER, address, endpoint, packets_read, wait_until_read};
use apus::{DropReason, Endpoint};
use apus_wire::{Role, UdpFields};

const NAME: &str = "off_path::control_packets::no_control_packet_is_taken_from_another";

/// Source and target of forged packets.
struct Attack<'a> {
    from: &'a Endpoint,
    to: &'a Endpoint,
    sender: Role,
    id: u64,
}

impl Attack<'_> {
    /// Sends these packets with each of these sessions. Returns how many packets the receiver has
    /// dropped.
    fn run(&self, forger: &Forger, packets: &[Control], sessions: &[UdpFields]) -> u64 {
        let (from, to) = (address(self.from), address(self.to));
        let dropped = || self.to.metrics().protocol.dropped_total();
        let before = dropped();
        for fields in sessions {
            let read = packets_read(self.to);
            let envelope = Envelope { from, to, sender: self.sender, id: self.id, fields: *fields };
            for packet in packets {
                forger.send(from, to, &envelope.write(packet));
            }
            wait_until_read(self.to, read, packets.len());
        }
        dropped() - before
    }
}

/// Each control packet, to either end of a long call: it is dropped, the call ends as if there had
/// been none, and the priorities do not change.
#[test]
fn no_control_packet_is_taken_from_another() {
    in_namespace(NAME, || {
        let (witness, forger) = (Witness::open(), Forger::open());
        let (server, client) = (endpoint(SERVER), endpoint(CLIENT));
        let to = server.local_addr();
        let (long, response) = (vec![1; 2_000_000], vec![2; 2_000_000]);
        client.send(to, "first", 0).unwrap();
        server.recv_request().unwrap().reply("first").unwrap();
        client.recv_completion().unwrap().result.unwrap();
        let session = witness.session(address(&server), address(&client));

        client.send(to, long.clone(), 0).unwrap();
        let request = server.recv_request().unwrap();
        assert_eq!(*request.payload(), long);
        let id = only_call(&client);
        let at_client = Attack { from: &server, to: &client, sender: Role::Server, id };
        let at_server = Attack { from: &client, to: &server, sender: Role::Client, id };
        let (packets, others) = (Control::all(), all_but(session));
        for attack in [&at_client, &at_server] {
            let forged = (packets.len() * others.len()) as u64;
            assert_eq!(attack.run(&forger, &packets, &others), forged, "all are dropped");
            let stale = attack.to.metrics().protocol.dropped(DropReason::StaleSession);
            assert!(stale > forged / 2, "{stale} of {forged} for their session");
        }
        request.reply(response.clone()).unwrap();
        assert_eq!(client.recv_completion().unwrap().result.unwrap(), response);
        let failed = client.metrics().protocol.progress.client_rpcs_failed;
        let resent = client.metrics().protocol.recovery.resent_packets;
        assert_eq!((failed, resent), (0, 0));

        client.send(to, "last", 0).unwrap();
        let request = server.recv_request().unwrap();
        let versions = witness.cutoff_versions(address(&client), address(&server));
        assert!(!versions.contains(&FORGED_CUTOFFS), "the priorities are those of the server");

        // The same packet works with the session.
        let refusal = Attack { id: only_call(&client), ..at_client };
        refusal.run(&forger, &[Control::REFUSAL], &[in_session(session)]);
        client.recv_completion().unwrap().result.unwrap_err();
        drop(request);
    });
}
