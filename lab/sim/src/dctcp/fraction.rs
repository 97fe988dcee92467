//! Estimate of the fraction of marked segments.
//!
//! `alpha` is estimated once for each window of data: alpha <- (1 - g) * alpha + g * F, where F is
//! the fraction of the segments acknowledged in that window whose ACK carried the echo. Source: the
//! DCTCP paper, section 3.1 (1); RFC 8257 section 3.3; computed in integers and 1024ths as in Linux
//! (`dctcp_update_alpha`).

use super::config::Config;
use super::segment::Position;

/// Alpha of a path that marks every packet, in units of 1 / 1024.
pub(super) const ONE: u32 = 1_024;

/// The estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fraction {
    alpha: u32,
    /// Segments delivered in this window of data, and how many of them were marked.
    delivered: u32,
    marked: u32,
    /// The window ends when this position is acknowledged.
    window_end: Position,
}

impl Fraction {
    pub(super) const fn new(config: &Config) -> Self {
        Self { alpha: config.initial_alpha, delivered: 0, marked: 0, window_end: 0 }
    }

    /// Returns the estimate in 1024ths.
    pub(super) const fn alpha(&self) -> u32 {
        self.alpha
    }

    /// Records that an ACK with the given echo reported `delivered` segments. Everything below
    /// `una` is acknowledged now, and `next` is sent next.
    pub(super) fn on_ack(
        &mut self,
        config: &Config,
        delivered: u32,
        echo: bool,
        una: Position,
        next: Position,
    ) {
        self.delivered += delivered;
        if echo {
            self.marked += delivered;
        }
        if una < self.window_end {
            return;
        }
        let step = self.alpha >> config.gain_shift;
        // As in Linux, a value too small to shrink becomes 0.
        self.alpha -= if step == 0 { self.alpha } else { step };
        if self.marked > 0 {
            let share = (u64::from(self.marked) << (10 - config.gain_shift))
                / u64::from(self.delivered.max(1));
            self.alpha = (self.alpha + share as u32).min(ONE);
        }
        self.delivered = 0;
        self.marked = 0;
        self.window_end = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns alpha after `windows` windows of ten segments with `marked` marks each.
    fn after(config: &Config, windows: u32, marked: u32) -> u32 {
        let mut fraction = Fraction::new(config);
        let mut una = 0;
        for _ in 0..windows {
            for segment in 0..10 {
                una += 1;
                let next = (una - 1) / 10 * 10 + 20;
                fraction.on_ack(config, 1, segment < marked, una, next);
            }
        }
        fraction.alpha()
    }

    #[test]
    fn it_converges_to_the_marked_fraction() {
        let config = Config::default();
        assert_eq!(after(&config, 200, 0), 0);
        // 307 is the fraction; integer arithmetic stops where a sixteenth of alpha equals the
        // increment.
        assert!((300..=320).contains(&after(&config, 200, 3)), "{}", after(&config, 200, 3));
        // Integers lose less than a sixteenth of the way to the top.
        assert!(after(&config, 200, 10) > 1_000, "{}", after(&config, 200, 10));
    }

    /// Section 3.1 (1) with g = 1/16: after n windows without marks (15/16)^n remains.
    #[test]
    fn the_gain_is_a_sixteenth() {
        let config = Config::default();
        let expected = (0..10).fold(1_024, |alpha, _| alpha - alpha / 16);
        assert!(after(&config, 10, 0).abs_diff(expected) <= 64, "{}", after(&config, 10, 0));
    }

    #[test]
    fn it_changes_once_a_window() {
        let config = Config::default();
        let mut fraction = Fraction::new(&config);
        fraction.on_ack(&config, 1, false, 1, 100);
        let before = fraction.alpha();
        for una in 2..100 {
            fraction.on_ack(&config, 1, true, una, 200);
            assert_eq!(fraction.alpha(), before);
        }
        fraction.on_ack(&config, 1, true, 100, 200);
        assert_eq!(fraction.alpha(), before - before / 16 + 64, "all were marked");
    }
}
