//! A peer of a version before empty messages (WIRE-31, WIRE-32), played with packets as that
//! version writes them.

use crate::{failure, over_udp};
use apus::{Execution, FailureKind};
use std::net::UdpSocket;

const DATA: u8 = 0x10;
const RESEND: u8 = 0x12;
const RPC_UNKNOWN: u8 = 0x13;

/// Offsets in the common header.
const TYPE: usize = 11;
const FLAGS: usize = 13;
const FEATURES: usize = 18;

/// The header of the answer to `packet` with the session, as a version without features writes it.
fn answer(packet: &[u8], kind: u8, flags: u8) -> Vec<u8> {
    let mut answer = packet[..28].to_vec();
    answer.copy_within(2..4, 0);
    answer[2..4].copy_from_slice(&packet[..2]);
    answer[4..8].fill(0);
    answer[8..11].fill(0xff);
    (answer[TYPE], answer[12], answer[FLAGS]) = (kind, 5 << 4, 1 << 4 | flags);
    answer[FEATURES..20].fill(0);
    answer[27] ^= 1;
    answer
}

/// The server drops the request as malformed, and answers RESENDs with RPC_UNKNOWN: the call would
/// be repeated forever.
#[test]
fn an_empty_request_to_an_older_server_fails_with_that_reason() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut dropped = 0;
        loop {
            let mut packet = [0; 2048];
            let (len, from) = server.recv_from(&mut packet).unwrap();
            assert_eq!(packet[FEATURES..20], [0, 3], "it states that it takes empty messages");
            match packet[TYPE] {
                DATA => {
                    assert_eq!((len, &packet[28..32]), (56, &[0; 4][..]), "one packet, no bytes");
                    dropped += 1;
                }
                RESEND => {
                    let unknown = answer(&packet[..len], RPC_UNKNOWN, 0);
                    server.send_to(&unknown, from).unwrap();
                    return dropped;
                }
                other => panic!("packet of type {other:#x}"),
            }
        }
    });
    let error = failure(over_udp().client().unwrap().call(to, ""));
    assert_eq!((error.kind, error.execution), (FailureKind::PeerTooOld, Execution::NotExecuted));
    assert_eq!(thread.join().unwrap(), 1, "it was not repeated");
}

/// WIRE-33: such a client does not support unguessable sessions. It is notified of that, and no
/// state of its request is kept; it reads the reason as "abandoned".
#[test]
fn a_request_of_an_older_client_is_refused() {
    let server = over_udp().bind("127.0.0.1:0").unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.local_addr()).unwrap();
    let (from, to) = (client.local_addr().unwrap().port(), server.local_addr().port());
    let mut request = vec![0; 57];
    request[..2].copy_from_slice(&from.to_be_bytes());
    request[2..4].copy_from_slice(&to.to_be_bytes());
    (request[TYPE], request[12], request[FLAGS]) = (DATA, 14 << 4, 1 << 4);
    request[14..18].copy_from_slice(&[1, 2, 3, 4]);
    request[27] = 8;
    (request[31], request[35]) = (1, 1);
    client.send(&request).unwrap();
    let mut packet = [0; 2048];
    let len = client.recv(&mut packet).unwrap();
    const REFUSED: u8 = 0b1000;
    assert_eq!((len, packet[TYPE]), (28, RPC_UNKNOWN));
    assert_eq!((packet[FLAGS] & 0xf, packet[7]), (REFUSED, 6));
    let metrics = server.metrics().protocol;
    assert_eq!(metrics.live.peers, 0, "no trace of it");
}
