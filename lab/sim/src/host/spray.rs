//! Source ports of sprayed packets (SEND-15).

use apus_wire::Header;

/// The additional ports of a host, used in turn as in a driver.
#[derive(Clone, Copy, Debug)]
pub struct SprayPorts {
    count: u8,
    /// The last port used, from 1 on.
    last: u8,
}

impl SprayPorts {
    /// Returns `count` ports, up to 255.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { count: count as u8, last: 0 }
    }

    /// Returns the number of the source port for packets with this header: 0, the host's own port,
    /// if they are not sprayed.
    #[inline]
    pub fn choose(&mut self, header: &[u8]) -> u8 {
        if self.count == 0 || Header::peek_sprayed(header).is_none() {
            return 0;
        }
        self.last = self.last % self.count + 1;
        self.last
    }
}
