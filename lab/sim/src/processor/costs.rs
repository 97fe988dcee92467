//! Time that a processor needs for packets.

use apus_workload::time::Rate;

/// Share of a processor's time for a packet that is spent on sending it, in thirds. Chosen by us:
/// of the engine's time under W4 over loopback, 64 % was in sending and about half of that in
/// receiving and in the protocol.
const SENDING_THIRDS: u64 = 2;
/// Parts into which the time for a full-size packet is divided: one for the packet, one for its
/// bytes. Chosen by us: a system call and the protocol cost about as much as copying 1500 bytes
/// through the stack.
const PARTS: u64 = 2;

/// Time for each packet in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Picoseconds for a packet of any length.
    pub picos_per_packet: u64,
    /// Picoseconds for each byte of it on the wire.
    pub picos_per_byte: u64,
}

impl Cost {
    /// Returns the time for a packet with `wire_bytes` bytes on the wire, in picoseconds.
    #[must_use]
    pub const fn picos(self, wire_bytes: u32) -> u64 {
        self.picos_per_packet + self.picos_per_byte * wire_bytes as u64
    }
}

/// Time for each packet in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Receiving a packet, from the socket to the end of the protocol's work.
    pub receive: Cost,
    /// Sending a packet.
    pub send: Cost,
}

impl Costs {
    /// Returns the costs of a processor that is fully occupied by packets of `full_bytes` bytes on
    /// the wire at `rate` in each direction at the same time.
    ///
    /// Sending takes two thirds of the time; in each direction, half of the time is for the
    /// packet's bytes. Shorter packets therefore have a lower rate in bytes, and a higher one in
    /// packets.
    #[must_use]
    pub const fn at_rate(rate: Rate, full_bytes: u32) -> Self {
        let both = rate.picos(full_bytes as u64);
        let sending = both * SENDING_THIRDS / 3;
        Self {
            receive: Self::divided(both - sending, full_bytes),
            send: Self::divided(sending, full_bytes),
        }
    }

    const fn divided(picos: u64, full_bytes: u32) -> Cost {
        let picos_per_byte = picos / PARTS / full_bytes as u64;
        Cost { picos_per_packet: picos - picos_per_byte * full_bytes as u64, picos_per_byte }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_each_way_takes_the_time_of_the_rate() {
        let rate = Rate::from_mbps(10_000).unwrap();
        let Costs { receive, send } = Costs::at_rate(rate, 1_538);
        assert_eq!(receive.picos(1_538) + send.picos(1_538), rate.picos(1_538));
        assert_eq!(send.picos(1_538) / 1_000, 820);
        assert_eq!(receive.picos(84) / 1_000, 216, "half of it, and a little for the bytes");
    }
}
