//! Cost per packet with and without segmentation offload.

use std::net::UdpSocket;
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{UdpGroSegment, UdpGsoSegment};

use apus_measure::clock;

/// Payload of a packet in bytes. Chosen by us: fits into an Ethernet packet, and 40 fit into one
/// call.
const PAYLOAD: usize = 1_400;
/// Packets per call.
const TOGETHER: usize = 40;
/// Calls of each kind. Chosen by us: ten milliseconds in total.
const CALLS: usize = 20;

/// Returns nanoseconds per packet sent and received over the loopback interface: with one call per
/// packet, and with one call per 40 packets. `None` if the system has no segmentation offload.
pub(in crate::doctor) fn cost() -> Option<(f64, f64)> {
    Some((alone()?, together()?))
}

fn pair() -> Option<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind("127.0.0.1:0").ok()?;
    let sender = UdpSocket::bind("127.0.0.1:0").ok()?;
    sender.connect(receiver.local_addr().ok()?).ok()?;
    // The loopback interface loses no packets here; if it does, the measurement fails instead of
    // waiting.
    receiver.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    Some((sender, receiver))
}

fn alone() -> Option<f64> {
    let (sender, receiver) = pair()?;
    let packet = [0; PAYLOAD];
    let mut room = [0; PAYLOAD];
    let mut exchange = || {
        sender.send(&packet).ok()?;
        receiver.recv(&mut room).ok()
    };
    exchange()?;
    let began = clock::now();
    for _ in 0..CALLS * TOGETHER {
        exchange()?;
    }
    Some((clock::now() - began) as f64 / (CALLS * TOGETHER) as f64)
}

fn together() -> Option<f64> {
    let (sender, receiver) = pair()?;
    setsockopt(&sender, UdpGsoSegment, &(PAYLOAD as i32)).ok()?;
    setsockopt(&receiver, UdpGroSegment, &true).ok()?;
    let packets = vec![0; TOGETHER * PAYLOAD];
    let mut room = vec![0; 1 << 16];
    let mut exchange = || {
        sender.send(&packets).ok()?;
        // Packets may arrive merged or not.
        let mut left = packets.len();
        while left > 0 {
            left = left.saturating_sub(receiver.recv(&mut room).ok()?);
        }
        Some(())
    };
    exchange()?;
    let began = clock::now();
    for _ in 0..CALLS {
        exchange()?;
    }
    Some((clock::now() - began) as f64 / (CALLS * TOGETHER) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_come_through() {
        let (alone, together) = cost().unwrap();
        assert!(alone > 0.0 && together > 0.0);
    }
}
