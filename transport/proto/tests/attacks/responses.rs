//! Responses that no client takes. Requirements CAP-1 and CAP-21.

use crate::service::{RawClient, Service};
use apus_proto::Config;
use apus_wire::{Body, Resend};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// "The first byte is missing."
const FIRST_BYTE: Body<'_> =
    Body::Resend(Resend { offset: 0, length: 1, priority: 7, brief: false });

/// A service with 8 MB to send, half of it to one host. Requests of 100 bytes are answered by 100 kB,
/// others by as many kB as they have bytes, up to 20; longer ones by as many bytes.
fn service() -> Service {
    let config = Config::builder()
        .max_message(1_000_000)
        .max_send_bytes(8_000_000)
        .max_send_bytes_per_peer(4_000_000)
        .build()
        .unwrap();
    Service::new(config, |length| Some(if length <= 100 { length * 1_000 } else { length }))
}

/// Raw clients at three ports of a host, each with the ids of its calls. Their responses, of `kbytes`
/// each, are 12 MB together.
fn hoard(service: &mut Service, host: u8, kbytes: usize) -> Vec<(RawClient, Vec<u64>)> {
    let enter = |port| (RawClient::enter(service, host, port), Vec::new());
    let mut raw_clients: Vec<(RawClient, Vec<u64>)> = (1..=3).map(enter).collect();
    for _ in 0..12_000 / kbytes / 3 {
        for (raw, ids) in &mut raw_clients {
            ids.push(raw.request(service, kbytes));
        }
    }
    raw_clients
}

/// Lets time pass. Each raw client requests the first byte of each response in 100 ms.
fn run(service: &mut Service, raw_clients: &[(RawClient, Vec<u64>)], time: Duration) {
    for _ in 0..time.as_millis() / 100 {
        for (raw, ids) in raw_clients {
            ids.iter().for_each(|id| raw.send(service, *id, FIRST_BYTE));
        }
        service.run(100 * MILLISECOND);
    }
}

/// The attack as it was shown: three ports of a host kept 256 MiB of responses with 14 kbit/s, and
/// no other client was served. Responses of 60 kB count as short.
#[test]
fn a_host_that_takes_nothing_keeps_no_other_away() {
    for kbytes in [100, 60, 3] {
        let mut service = service();
        let raw_clients = hoard(&mut service, 1, kbytes);
        let most = service.most_send_bytes;
        assert!((3_390_000..=4_010_000).contains(&most), "{kbytes}: {most}");
        for round in 0..3 {
            let clients: Vec<_> =
                (2..7).map(|host| service.call(host, round, &[1, 200_000, 5])).collect();
            service.run(20 * MILLISECOND);
            assert_eq!(service.served(&clients), 15, "{kbytes}");
            run(&mut service, &raw_clients, SECOND);
        }
        let admission = service.server.metrics().admission;
        assert!(admission.responses_refused > 0, "{kbytes}: no other host waits for them");
    }
}

/// A client died with 3.5 MB of responses. They make room for others of its host as soon as they
/// have stood still for a while.
#[test]
fn what_a_host_does_not_take_makes_room_for_its_other_calls() {
    let mut service = service();
    let mut raw = RawClient::enter(&mut service, 1, 9);
    (0..35).for_each(|_| _ = raw.request(&mut service, 100));
    service.run(100 * MILLISECOND);
    assert_eq!(service.server.metrics().admission.responses_refused, 0);
    service.call(2, 1, &[1]);
    let mut other = RawClient::enter(&mut service, 1, 10);
    other.request(&mut service, 100);
    let admission = service.server.metrics().admission;
    assert_eq!((admission.responses_given_up, admission.responses_refused), (1, 0));
    // All others have stood still for as long.
    other.request(&mut service, 100);
    assert_eq!(service.server.metrics().admission.responses_given_up, 2);
}

/// A host that takes its responses slowly does not keep the application from others: a reply
/// beyond its limit waits while the host is alone, and is dropped when another one has a request.
#[test]
fn replies_to_a_full_host_wait_for_no_other_host() {
    let mut service = service();
    let mut raw = RawClient::enter(&mut service, 1, 1);
    (0..60).for_each(|_| _ = raw.request(&mut service, 100));
    let admission = service.server.metrics().admission;
    assert_eq!((admission.responses_given_up, service.most_send_bytes / 100_000), (0, 35));
    assert_eq!((admission.refused_of_host, admission.responses_refused), (0, 0));
    let honest = service.call(2, 1, &[100]);
    assert_eq!(service.client(honest).served, 1);
    assert!(service.server.metrics().admission.responses_refused >= 24);
    // Beside the other host, what could not be answered is not executed.
    raw.request(&mut service, 100);
    assert_eq!(service.server.metrics().admission.refused_of_host, 1);
}

/// Two hosts fill all that long responses may have. Short ones have room at once. The others have it
/// when responses have made no progress for `timeout_usecs`, whatever RESENDs repeat: those of the
/// larger host end first, and no more than are needed.
#[test]
fn responses_without_progress_end_when_others_need_room() {
    let mut service = service();
    let mut raw_clients = hoard(&mut service, 1, 100);
    raw_clients.extend(hoard(&mut service, 2, 90));
    let most = service.most_send_bytes;
    assert!((6_800_000..=7_000_000).contains(&most), "{most}");
    let short: Vec<_> = (3..8).map(|host| service.call(host, 1, &[1, 20])).collect();
    service.run(20 * MILLISECOND);
    assert_eq!(service.served(&short), 10, "an eighth is left to short ones");

    let kept = service.server.live().server_rpcs;
    run(&mut service, &raw_clients, 3 * SECOND);
    assert_eq!(service.server.metrics().admission.responses_given_up, 0, "nothing needs it");
    // The first calls of the raw clients are forgotten: nothing was said about them.
    assert_eq!(service.server.live().server_rpcs, kept - raw_clients.len() as u64);

    let long: Vec<_> = (8..13).map(|host| service.call(host, 1, &[500_000])).collect();
    run(&mut service, &raw_clients, 2 * SECOND);
    assert_eq!(service.served(&long), 5);
    let given_up = service.server.metrics().admission.responses_given_up;
    assert!((4..40).contains(&given_up), "{given_up}");
}

/// A response that is taken slowly makes progress, and is kept.
#[test]
fn responses_with_progress_are_kept() {
    let mut service = service();
    let mut raw_clients = hoard(&mut service, 1, 100);
    raw_clients.extend(hoard(&mut service, 2, 100));
    let long = service.call(8, 1, &[500_000]);
    for step in 0..20_u32 {
        for (raw, ids) in &raw_clients {
            for id in ids {
                let offset = 2_000 + 2_000 * step;
                let resend = Resend { offset, length: 2_000, priority: 7, brief: false };
                raw.send(&mut service, *id, Body::Resend(resend));
            }
        }
        service.run(100 * MILLISECOND);
    }
    let admission = service.server.metrics().admission;
    assert_eq!(admission.responses_given_up, 0);
    assert_eq!(service.client(long).served, 0, "it waits for room");
}
