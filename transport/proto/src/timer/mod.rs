//! Timers: tables of times at which something is due although no packet arrives.
//!
//! [`Silence`] watches RPCs whose peer should be sending, [`Deadlines`] holds the callers' limits,
//! [`Suspicions`] the peers that packets may not reach, [`Reaper`] the RPCs that must end,
//! [`IdleAcks`] the peers with unsent acks, [`ResendLines`] the RPCs that wait for their turn to
//! send a RESEND. The actions are in `expiry`.

mod arrears;
mod deadlines;
mod idle_acks;
mod reaper;
mod resend_interval;
mod resend_line;
mod silence;
mod suspicion;

pub(crate) use arrears::Arrears;
pub(crate) use deadlines::Deadlines;
pub(crate) use idle_acks::IdleAcks;
pub(crate) use reaper::{Reaper, Why};
pub(crate) use resend_interval::{InFlight, MIN_RESENDS, ResendInterval};
pub(crate) use resend_line::ResendLines;
pub(crate) use silence::Silence;
pub(crate) use suspicion::{Suspicion, Suspicions};

use crate::config::Config;
use crate::time::Instant;

/// Why the core must be called at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeoutReason {
    /// RPCs must end.
    Reap,
    /// A call's deadline passes.
    Deadline,
    /// A peer may have been silent for too long.
    Silence,
    /// The network interface will have room: call `poll_transmit`.
    Pacer,
    /// Acks have waited for a packet to ride on.
    Acks,
    /// Idle peers are looked for.
    Peers,
}

/// All timers of an endpoint.
#[derive(Debug)]
pub(crate) struct Timers {
    /// RPCs whose peer should be talking.
    pub(crate) silence: Silence,
    /// RPCs waiting to request their missing bytes.
    pub(crate) resend_lines: ResendLines,
    /// Deadlines of calls.
    pub(crate) deadlines: Deadlines,
    /// RPCs that must end.
    pub(crate) reaper: Reaper,
    /// Peers that packets may not reach.
    pub(crate) suspicions: Suspicions,
    /// Peers with acks that wait for DATA.
    pub(crate) idle_acks: IdleAcks,
    /// How far the endpoint is behind with reading.
    pub(crate) arrears: Arrears,
    /// How long silence is normal.
    pub(crate) resend_interval: ResendInterval,
}

impl Timers {
    /// The timers of an endpoint whose link carries `link_mbps` Mbit/s.
    pub(crate) fn new(config: &Config, link_mbps: u64) -> Self {
        let resend_interval = ResendInterval::new(config, link_mbps);
        Self {
            silence: Silence::new(resend_interval.check_period(config)),
            resend_lines: ResendLines::default(),
            deadlines: Deadlines::default(),
            reaper: Reaper::default(),
            suspicions: Suspicions::default(),
            idle_acks: IdleAcks::default(),
            arrears: Arrears::default(),
            resend_interval,
        }
    }

    /// How long sent bytes count as in flight.
    pub(crate) fn in_flight(&self, config: &Config, now: Instant) -> InFlight {
        self.resend_interval.in_flight(config, self.arrears.behind(now))
    }

    /// The link carries `link_mbps` Mbit/s from now on.
    pub(crate) fn set_link_rate(&mut self, config: &Config, link_mbps: u64) {
        self.resend_interval = ResendInterval::new(config, link_mbps);
        self.silence.set_period(self.resend_interval.check_period(config));
    }
}
