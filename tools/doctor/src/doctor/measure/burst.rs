//! How much of a burst does a buffer lose, while nobody receives?

use std::net::UdpSocket;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

/// Packets of the burst: 25 Gbit/s for a millisecond.
pub(in crate::doctor) const PACKETS: usize = 2_083;

/// Payload of a full packet on Ethernet.
const PAYLOAD: usize = 1_472;

/// How long a packet may take through the loopback interface. Ours: a thousand times what it does.
const QUIET: Duration = Duration::from_millis(20);

/// Share of the burst that is lost with a buffer of so many bytes, asked for without privileges; `None` if
/// the loopback interface is down.
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
