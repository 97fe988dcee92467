//! Loss of a burst in a socket buffer while no thread receives.

use std::net::UdpSocket;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

/// Packets in the burst: one millisecond at 25 Gbit/s.
pub(in crate::doctor) const PACKETS: usize = 2_083;

/// Payload of a full Ethernet packet in bytes.
const PAYLOAD: usize = 1_472;

/// Time until an outstanding packet counts as lost. Chosen by us: a thousand times the usual delay
/// of the loopback interface.
const QUIET: Duration = Duration::from_millis(20);

/// Returns the share of the burst lost with an unprivileged request for a buffer of `buffer`
/// bytes; `None` if the loopback interface is down.
pub(in crate::doctor) fn lost(buffer: u64) -> Option<f64> {
    let receiver = UdpSocket::bind("127.0.0.1:0").ok()?;
    set_socket_recv_buffer_size(&receiver, usize::try_from(buffer).ok()?).ok()?;
    let sender = UdpSocket::bind("127.0.0.1:0").ok()?;
    sender.connect(receiver.local_addr().ok()?).ok()?;
    let packet = [0; PAYLOAD];
    for _ in 0..PACKETS {
        sender.send(&packet).ok()?;
    }
    receiver.set_read_timeout(Some(QUIET)).ok()?;
    let mut arrived = 0;
    let mut room = [0; PAYLOAD];
    while receiver.recv(&mut room).is_ok() {
        arrived += 1;
    }
    Some(1.0 - f64::from(arrived) / PACKETS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_a_few_packets_loses_nearly_all() {
        assert!(lost(4_096).unwrap() > 0.95);
    }
}
