//! Limit of the credit of one sender: additive increase, multiplicative decrease.
//!
//! There are two signals, marks of switches and the bit of a busy sender, each with its own loop,
//! and the smaller limit applies. A loop works like DCTCP: the limit grows by a packet for each
//! window of packets without the signal, and is cut at most once per window, by half the estimated
//! fraction of packets with it. Source: the paper, section 4.2, and the simulator of its authors
//! (gain 0.08, the estimate starts at 0).

use super::config::Config;

/// A fraction of 1.
const ONE: u64 = 1 << 20;
/// Weight of the newest window in the estimate, in hundredths.
const GAIN_PERCENT: u64 = 8;

/// One loop.
#[derive(Clone, Copy, Debug)]
struct ControlLoop {
    limit: u64,
    /// Estimated fraction of packets with the signal, in units of 1 / [`ONE`].
    fraction: u64,
    /// Packets in this window, and how many of them had the signal.
    packets: u64,
    signals: u64,
    /// Packets since the last cut.
    since_cut: u64,
}

impl ControlLoop {
    const fn new(limit: u64) -> Self {
        Self { limit, fraction: 0, packets: 0, signals: 0, since_cut: 0 }
    }

    fn observe(&mut self, config: &Config, signal: bool) {
        let full = config.full_packet();
        let window = (self.limit / full).max(1);
        self.packets += 1;
        self.signals += u64::from(signal);
        self.since_cut += 1;
        if self.packets >= window {
            let share = self.signals * ONE / self.packets;
            self.fraction = (self.fraction * (100 - GAIN_PERCENT) + share * GAIN_PERCENT) / 100;
            (self.packets, self.signals) = (0, 0);
        }
        if !signal {
            self.limit += full * full / self.limit;
        } else if self.since_cut >= window {
            self.limit -= self.limit * self.fraction / (2 * ONE);
            self.since_cut = 0;
        }
        self.limit = self.limit.clamp(full, config.bdp.max(full));
    }
}

/// Limit of the credit of one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderLimit {
    network: ControlLoop,
    sender: ControlLoop,
}

impl SenderLimit {
    pub(super) fn new(config: &Config) -> Self {
        let all = ControlLoop::new(config.bdp.max(config.full_packet()));
        Self { network: all, sender: all }
    }

    /// Records that a packet with data has arrived.
    pub(super) fn observe(&mut self, config: &Config, is_marked: bool, is_busy: bool) {
        self.network.observe(config, is_marked);
        self.sender.observe(config, is_busy);
    }

    /// Returns the limit of bytes in flight: the sender gets credit while it is below.
    pub(super) fn bytes(&self) -> u64 {
        self.network.limit.min(self.sender.limit)
    }
}

#[cfg(test)]
mod tests {
    use apus_workload::PacketOverhead;

    use super::*;
    use crate::preset;

    #[test]
    fn the_smaller_of_two_limits_holds_and_recovers() {
        let config = Config::new(&preset::sigcomm18(), PacketOverhead::UDP_OVER_ETHERNET);
        let mut limit = SenderLimit::new(&config);
        assert_eq!(limit.bytes(), config.bdp);
        (0..10).for_each(|_| limit.observe(&config, false, false));
        assert_eq!(limit.bytes(), config.bdp, "never more than a BDP");
        for _ in 0..2_000 {
            limit.observe(&config, false, true);
        }
        assert_eq!(limit.bytes(), config.full_packet(), "a sender that is always busy");
        assert_eq!(limit.network.limit, config.bdp, "the other loop is its own");
        (0..40).for_each(|_| limit.observe(&config, false, false));
        assert_eq!(limit.bytes(), config.bdp, "about a packet more for each window");
        // Half of the packets: cuts and growth balance in between.
        for packet in 0..4_000 {
            limit.observe(&config, packet % 2 == 0, false);
        }
        let balance = limit.bytes();
        assert!((config.full_packet()..config.bdp).contains(&balance), "{balance}");
        assert_eq!(limit.sender.limit, config.bdp);
    }
}
