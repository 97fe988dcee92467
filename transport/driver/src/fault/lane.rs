//! Lane: applies faults to the packets of one direction.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::config::{Faults, PER_MILLION};
use super::counters::LaneCounters;

/// A contiguous packet with the driver's metadata.
#[derive(Clone, Debug)]
pub(super) struct Frame<T> {
    pub(super) metadata: T,
    pub(super) bytes: Vec<u8>,
}

/// Selects the stream of random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Receive = 1,
    Transmit = 2,
}

/// Applies [`Faults`] to a sequence of packets.
#[derive(Debug)]
pub(super) struct Lane<T> {
    faults: Faults,
    random: Pcg64,
    /// Packets still to be dropped by the current burst loss.
    burst_left: u32,
    /// Delayed packets in order of arrival, each with the number of packets that still overtake
    /// it.
    delayed: Vec<(u32, Frame<T>)>,
}

impl<T: Copy> Lane<T> {
    pub(super) fn new(faults: Faults, seed: u64, direction: Direction) -> Self {
        let random = Pcg64::new(u128::from(seed), direction as u128);
        Self { faults, random, burst_left: 0, delayed: Vec::new() }
    }

    /// Returns whether packets pass unchanged (FAULT-1).
    pub(super) fn is_clean(&self) -> bool {
        self.faults == Faults::none()
    }

    /// Returns whether packets are delayed.
    pub(super) fn has_delayed(&self) -> bool {
        !self.delayed.is_empty()
    }

    /// Applies faults to `frame`; `out` receives the packets that leave the lane now.
    pub(super) fn pass(
        &mut self,
        mut frame: Frame<T>,
        counters: &LaneCounters,
        out: &mut dyn FnMut(Frame<T>),
    ) {
        if self.is_lost(counters) {
            return;
        }
        if self.draw(self.faults.corruption) && !frame.bytes.is_empty() {
            self.flip_a_bit(&mut frame.bytes);
            counters.count_corrupted();
        }
        let copy = self.draw(self.faults.duplication).then(|| frame.clone());
        if copy.is_some() {
            counters.count_duplicated();
        }
        for frame in std::iter::once(frame).chain(copy) {
            if self.draw(self.faults.reordering) {
                counters.count_reordered();
                self.delayed.push((self.faults.hold, frame));
            } else {
                out(frame);
                self.overtake(out);
            }
        }
    }

    /// Releases all delayed packets (FAULT-2).
    pub(super) fn release(&mut self) -> impl Iterator<Item = Frame<T>> {
        self.delayed.drain(..).map(|(_, frame)| frame)
    }

    fn is_lost(&mut self, counters: &LaneCounters) -> bool {
        if self.burst_left == 0 && self.draw(self.faults.burst_loss) {
            self.burst_left = self.faults.burst_length;
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            counters.count_burst_lost();
            return true;
        }
        let lost = self.draw(self.faults.loss);
        if lost {
            counters.count_lost();
        }
        lost
    }

    /// Records that one packet overtook all delayed packets; releases the packets whose delay is
    /// over.
    fn overtake(&mut self, out: &mut dyn FnMut(Frame<T>)) {
        for (left, _) in &mut self.delayed {
            *left -= 1;
        }
        for (_, frame) in self.delayed.extract_if(.., |(left, _)| *left == 0) {
            out(frame);
        }
    }

    fn flip_a_bit(&mut self, bytes: &mut [u8]) {
        let bit = self.random.random_range(0..bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }

    fn draw(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.random.random_range(0..PER_MILLION) < per_million
    }
}
