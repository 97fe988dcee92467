//! SOCKET-1: packets are sent and received without any allocation once buffers have reached their
//! final size.

use apus_driver::Burst;
use apus_socket::UdpConfig;

use crate::host::{Host, LOOPBACK, bound_to};

/// More than the number of buffers and groups that can grow.
const MOST_GROWTHS: usize = 300;

/// Sends bursts of all kinds, to several peers, in several classes, and waits for all of them.
fn work(config: UdpConfig) {
    let mut host = Host::open(&config);
    let mut others: Vec<_> = (0..40).map(|_| Host::open(&config)).collect();
    let bytes = vec![0; 1 << 17];
    let kinds = [(1, 100), (1, 3000), (1, 8000), (5, 100), (64, 30), (3, 1400), (9, 8500)];
    let mut round = || {
        for (number, (packets, len)) in kinds.into_iter().enumerate() {
            let payload = &bytes[..packets * (len - 28)];
            let (first, second) = payload.split_at(payload.len() / 3);
            let burst = Burst {
                to: host.address,
                from: None,
                traffic_class: if number % 2 == 0 { 0 } else { 0xb8 },
                headers: &bytes[..packets * 28],
                header_len: 28,
                payload: &[first, second],
                segment: len - 28,
                coalesce: 0,
            };
            host.transmit.send(&burst).unwrap();
            host.flush();
            host.collect(packets, &mut |packet| assert!(packet.len() <= len));
            assert!(host.reports().is_empty());
        }
        for other in &others {
            host.transmit.send(&Burst::single(other.address, &bytes[..28])).unwrap();
        }
        host.flush();
        for other in &mut others {
            other.collect(1, &mut |packet| assert_eq!(packet.len(), 28));
        }
    };
    // Memory grows with the largest batches so far, which depend on when the system delivers
    // packets.
    let mut series = || allocation_counter::measure(|| (0..20).for_each(|_| round()));
    let has_settled = (0..MOST_GROWTHS).any(|_| series().count_total == 0);
    assert!(has_settled, "each series of rounds allocates");
}

#[test]
fn packets_are_carried_without_allocations() {
    let config = bound_to(LOOPBACK);
    work(config);
    work(UdpConfig { segmentation_offload: false, ..config });
    work(UdpConfig { receive_offload: false, ..config });
}
