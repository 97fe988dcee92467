//! Clients of one host that exhaust shared resources of a server.

use super::attacker::Attacker;
use crate::namespace::in_namespace;
use crate::recording_server::RecordingServer;
use crate::{ATTACKER, CLIENT, address, over_udp, packets_read, wait_until_read};
use apus::{Config, DropReason, Endpoint, RpcInfo};
use std::net::SocketAddr;

/// Length of the longest message.
const CLAIM: usize = 64 << 20;

/// Four claims of 64 MiB, with one packet received of each, are kept alive. They filled the receive
/// budget.
#[test]
fn claims_take_no_room_from_others() {
    in_namespace("client::exhaustion::claims_take_no_room_from_others", || {
        // A claim stays for a minute without the answers of its attacker.
        let config = Config::builder().timeout_usecs(60_000_000).build().unwrap();
        let server = RecordingServer::start_with(over_udp().config(config));
        let to = address(&server.endpoint);
        let attackers: Vec<Attacker> = (0..4)
            .map(|_| {
                let before = packets_read(&server.endpoint);
                let from = ATTACKER.parse().unwrap();
                let attacker = Attacker::begin(from, to, CLAIM, &[0; 1_400]);
                wait_until_read(&server.endpoint, before, 2);
                attacker
            })
            .collect();
        assert_eq!(claims(&server.endpoint), 4);
        for number in 0..8_u8 {
            let client = over_udp().bind(CLIENT).unwrap();
            call(&client, &server.endpoint, &[number; 1_000_000], DropReason::NoBuffers, || {
                attackers.iter().for_each(Attacker::stay_alive);
            });
        }
        assert_eq!(claims(&server.endpoint), 4, "they are alive");
    });
}

/// Number of claims that the server keeps.
fn claims(server: &Endpoint) -> usize {
    let is_claim = |rpc: &RpcInfo| rpc.incoming.is_some_and(|m| m.length as usize == CLAIM);
    server.info().iter().filter(|rpc| is_claim(rpc)).count()
}

/// More ports than the server has room for peers, each with a request that is served. They filled
/// the table of peers.
#[test]
fn many_ports_keep_no_other_host_away() {
    in_namespace("client::exhaustion::many_ports_keep_no_other_host_away", || {
        let server = RecordingServer::start_with(over_udp());
        let to = address(&server.endpoint);
        let ip = ATTACKER.parse::<SocketAddr>().unwrap().ip();
        let known = over_udp().bind(CLIENT).unwrap();
        call(&known, &server.endpoint, &[1], DropReason::TooManyPeers, || {});
        for port in 10_000..20_500 {
            let before = packets_read(&server.endpoint);
            Attacker::begin(SocketAddr::new(ip, port), to, 1, b"?");
            wait_until_read(&server.endpoint, before, 2);
        }
        let new = over_udp().bind(CLIENT).unwrap();
        for client in [&known, &new] {
            call(client, &server.endpoint, &[1], DropReason::TooManyPeers, || {});
        }
    });
}

/// Makes a call that the server must not drop for this reason, and runs `meanwhile` until it is
/// answered.
fn call(
    client: &Endpoint,
    server: &Endpoint,
    request: &[u8],
    reason: DropReason,
    meanwhile: impl Fn(),
) {
    let dropped = || server.metrics().protocol.dropped(reason);
    let before = dropped();
    client.send(server.local_addr(), request.to_vec(), 0).unwrap();
    loop {
        if let Some(completion) = client.try_recv_completion().unwrap() {
            assert_eq!(completion.result.unwrap(), request);
            return;
        }
        assert_eq!(dropped(), before, "{reason:?}");
        meanwhile();
    }
}
