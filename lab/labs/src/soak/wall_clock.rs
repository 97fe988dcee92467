//! Steps of the wall clock, which all processes of the machine share.

use std::sync::{Mutex, PoisonError};

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

use apus_testbed::error::{Doing, Error};

/// Seconds of a step: more than the longest timeout of an endpoint, `peer_idle_secs_max` (120 s).
const STEP: i64 = 200;

/// The direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
}

impl Direction {
    /// Returns the name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Forward => "200 s forward",
            Self::Back => "200 s back",
        }
    }

    const fn seconds(self) -> i64 {
        match self {
            Self::Forward => STEP,
            Self::Back => -STEP,
        }
    }
}

/// The right to step the wall clock. Only one campaign at a time steps it.
pub(super) struct WallClock(Mutex<()>);

impl WallClock {
    /// Checks for the right.
    ///
    /// # Errors
    ///
    /// This user may not set the clock.
    pub(super) fn open() -> Result<Self, Error> {
        set_by(0).doing(|| {
            "set the wall clock, which `--clock-steps` needs (root, or CAP_SYS_TIME)".to_owned()
        })?;
        Ok(Self(Mutex::new(())))
    }

    /// Steps the clock, calls `during`, and steps it back.
    pub(super) fn stepped(
        &self,
        direction: Direction,
        during: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _alone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let step = |seconds| set_by(seconds).doing(|| "step the wall clock".to_owned());
        step(direction.seconds())?;
        // The clock is stepped back even if this fails.
        let result = during();
        step(-direction.seconds())?;
        result
    }
}

/// Moves the clock by `seconds`.
fn set_by(seconds: i64) -> std::io::Result<()> {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
    Ok(clock_settime(ClockId::Realtime, Timespec { tv_sec: tv_sec + seconds, tv_nsec })?)
}
