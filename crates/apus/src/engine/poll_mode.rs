//! How long does a thread spin before it sleeps?

use std::time::{Duration, Instant};

/// How a thread waits for packets and messages.
///
/// Spinning answers soonest and burns a core; sleeping costs a wake-up, several microseconds. The
/// hybrid spins for a while and sleeps then (row H-5).
///
/// As text, and with the feature `serde`: `spin`, `hybrid`, `hybrid=MICROSECONDS` or `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub enum PollMode {
    /// Never sleep.
    Spin,
    /// Spin for this long, then sleep.
    Hybrid(Duration),
    /// Sleep at once.
    Block,
}

impl PollMode {
    /// The kernel module's `poll_usecs`: 50 µs (row H-5, reference 2.4).
    pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);

    /// How long to spin before sleeping; `None` stands for ever.
    #[must_use]
    pub const fn spin_for(self) -> Option<Duration> {
        match self {
            Self::Spin => None,
            Self::Hybrid(time) => Some(time),
            Self::Block => Some(Duration::ZERO),
        }
    }

    /// Whether a thread sleeps as soon as there is nothing to do.
    pub(crate) const fn sleeps_at_once(self) -> bool {
        matches!(self, Self::Block) || matches!(self, Self::Hybrid(Duration::ZERO))
    }

    pub(crate) const fn spin(self) -> Spin {
        Spin { limit: self.spin_for(), since: None, seen: None, rounds: 0 }
    }
}

impl Default for PollMode {
    fn default() -> Self {
        Self::Hybrid(Self::DEFAULT_SPIN)
    }
}

/// One spell of spinning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    /// `None`: for ever.
    limit: Option<Duration>,
    /// When it began; the clock is read at the first look.
    since: Option<Instant>,
    /// The last look.
    seen: Option<Instant>,
    rounds: u32,
}

/// Rounds between two looks at the clock. A round is a system call or some tens of nanoseconds of
/// spinning; reading the clock costs as much as the latter.
const ROUNDS_PER_READ: u32 = 16;
/// The same for one that spins for ever, and looks only to know for how long it has.
const ROUNDS_PER_RARE_READ: u32 = 1_024;

impl Spin {
    /// One round: `true` to go on spinning, `false` to sleep.
    pub(crate) fn go_on(&mut self) -> bool {
        let Some(limit) = self.limit else {
            pause();
            self.rounds = self.rounds.wrapping_add(1);
            if self.rounds.is_multiple_of(ROUNDS_PER_RARE_READ) {
                self.read_clock();
            }
            return true;
        };
        if limit.is_zero() {
            return false;
        }
        pause();
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS_PER_READ) {
            return true;
        }
        self.read_clock() < limit
    }

    /// Looks at the clock: how long the spell has lasted, from the first look on.
    fn read_clock(&mut self) -> Duration {
        let now = Instant::now();
        self.seen = Some(now);
        now.duration_since(*self.since.get_or_insert(now))
    }

    /// Nanoseconds between the first look at the clock and the last one.
    pub(crate) fn spent(&self) -> u64 {
        let spent = self.since.zip(self.seen).map(|(since, seen)| seen.duration_since(since));
        u64::try_from(spent.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Spins until `done`; whether it was, before the time was up or the deadline passed.
    pub(crate) fn until(
        &mut self,
        deadline: Option<Instant>,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let mut rounds = 0_u32;
        loop {
            if done() {
                return true;
            }
            rounds = rounds.wrapping_add(1);
            let late = |at| rounds.is_multiple_of(ROUNDS_PER_READ) && at <= Instant::now();
            if !self.go_on() || deadline.is_some_and(late) {
                return false;
            }
        }
    }
}

#[cfg(not(apus_loom))]
fn pause() {
    std::hint::spin_loop();
}

#[cfg(apus_loom)]
fn pause() {
    loom::thread::yield_now();
}

impl std::str::FromStr for PollMode {
    type Err = ParsePollModeError;

    /// `spin`, `block`, `hybrid`, or `hybrid=100` (microseconds).
    fn from_str(text: &str) -> Result<Self, ParsePollModeError> {
        match text.split_once('=') {
            None if text == "spin" => Ok(Self::Spin),
            None if text == "block" => Ok(Self::Block),
            None if text == "hybrid" => Ok(Self::default()),
            Some(("hybrid", usecs)) => match usecs.parse() {
                Ok(usecs) => Ok(Self::Hybrid(Duration::from_micros(usecs))),
                Err(_) => Err(ParsePollModeError),
            },
            _ => Err(ParsePollModeError),
        }
    }
}

impl std::fmt::Display for PollMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spin => f.pad("spin"),
            Self::Block => f.pad("block"),
            Self::Hybrid(time) if *time == Self::DEFAULT_SPIN => f.pad("hybrid"),
            Self::Hybrid(time) => write!(f, "hybrid={}", time.as_micros()),
        }
    }
}

#[cfg(feature = "serde")]
impl From<PollMode> for String {
    fn from(poll: PollMode) -> Self {
        poll.to_string()
    }
}

#[cfg(feature = "serde")]
impl TryFrom<String> for PollMode {
    type Error = ParsePollModeError;

    fn try_from(text: String) -> Result<Self, ParsePollModeError> {
        text.parse()
    }
}

/// A text that names no way to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `spin`, `block`, `hybrid` or `hybrid=MICROSECONDS`, such as `hybrid=50`")]
pub struct ParsePollModeError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_agree() {
        for text in ["spin", "block", "hybrid", "hybrid=7"] {
            assert_eq!(text.parse::<PollMode>().unwrap().to_string(), text);
        }
        for text in ["", "Spin", "hybrid=", "hybrid=x", "spin=1"] {
            assert_eq!(text.parse::<PollMode>(), Err(ParsePollModeError), "{text}");
        }
    }

    #[test]
    fn blocking_does_not_spin_and_spinning_does_not_end() {
        assert!(!PollMode::Block.spin().go_on());
        let mut hybrid = PollMode::Hybrid(Duration::from_micros(20)).spin();
        assert!(!hybrid.until(None, || false) && hybrid.spent() >= 20_000, "{}", hybrid.spent());
        let mut spin = PollMode::Spin.spin();
        assert!((0..10_000).all(|_| spin.go_on()));
        assert!(spin.spent() > 0, "it says for how long it has, too");
        assert!(!PollMode::Hybrid(Duration::from_micros(20)).spin().until(None, || false));
        assert!(
            !PollMode::Spin.spin().until(Some(Instant::now()), || false),
            "the deadline counts"
        );
        assert!(PollMode::Block.spin().until(None, || true));
    }
}
