//! State shared by both halves of a sealed driver, with the operations for other threads.

use super::clock::SealClock;
use crate::session::{PeerLife, Session};
use apus_seal::{
    Datagram, HandshakeError, Handshakes, Identity, Limits, Negotiator, Opener, Refusals,
    SealCounters, SealEvent, Sealer, ServerLife,
};
use apus_wire::HEADER_LEN;
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between two checks of the keys' age.
const AGE_CHECK: Duration = Duration::from_secs(60);

/// The value of a timer that is not set.
const NEVER: u64 = u64::MAX;

/// Handshakes and peers of a sealed driver. Any thread may use it.
pub struct SealHandle {
    state: Mutex<SealState>,
    counters: Arc<SealCounters>,
    clock: SealClock,
    /// Whether there are changes for the transmitting half, or packets to send.
    for_transmit: AtomicBool,
    /// Whether there are changes for the receiving half.
    for_receive: AtomicBool,
    /// Whether there are refused packets to report.
    for_reports: AtomicBool,
    /// Whether there are sessions for the protocol.
    for_protocol: AtomicBool,
    /// When a timer is due, in nanoseconds since the clock's origin; [`NEVER`] if none is.
    due: AtomicU64,
}

/// The state behind the lock, which is taken for handshakes but never for a packet of an
/// established peer.
pub(super) struct SealState {
    pub(super) handshakes: Handshakes,
    /// Changes of the keys for sending.
    pub(super) sealers: VecDeque<(SocketAddr, Change<Sealer>)>,
    pub(super) openers: VecDeque<(SocketAddr, Change<Opener>)>,
    pub(super) sessions: VecDeque<NewSession>,
    pub(super) outbox: VecDeque<Datagram>,
    /// READY packets, and the sessions whose keys must seal them.
    pub(super) known: VecDeque<(Datagram, u64)>,
    /// First bytes of packets that were not sent because the handshake with their peer failed.
    pub(super) refused: VecDeque<(SocketAddr, [u8; HEADER_LEN])>,
    next_age_check: Duration,
}

/// A session that was not passed to the protocol yet.
pub(super) struct NewSession {
    pub(super) peer: SocketAddr,
    pub(super) number: u64,
    pub(super) server_life: Option<ServerLife>,
}

/// A change of the keys of a peer.
pub(super) enum Change<T> {
    /// The peer has these keys.
    Set(T),
    /// Keys of this session must not be used any more.
    Remove(u64),
}

impl fmt::Debug for SealHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealHandle(..)")
    }
}

impl SealHandle {
    pub(super) fn new(
        negotiator: Arc<dyn Negotiator>,
        port: u16,
        limits: Limits,
        clock: SealClock,
    ) -> Self {
        let handshakes = Handshakes::new(negotiator, port, limits, clock.now());
        Self {
            counters: handshakes.counters().clone(),
            state: Mutex::new(SealState {
                handshakes,
                sealers: VecDeque::new(),
                openers: VecDeque::new(),
                sessions: VecDeque::new(),
                outbox: VecDeque::new(),
                known: VecDeque::new(),
                refused: VecDeque::new(),
                next_age_check: clock.now() + AGE_CHECK,
            }),
            clock,
            for_transmit: AtomicBool::new(false),
            for_receive: AtomicBool::new(false),
            for_reports: AtomicBool::new(false),
            for_protocol: AtomicBool::new(false),
            due: AtomicU64::new(NEVER),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Arc<SealCounters> {
        &self.counters
    }

    /// Returns the identity that `peer` proved in the handshake that led to `session`.
    #[must_use]
    pub fn identity(&self, peer: SocketAddr, session: u64) -> Option<Arc<Identity>> {
        self.lock().handshakes.identity(canonical(peer), session)
    }

    /// Returns the identities of all peers with keys.
    #[must_use]
    pub fn identities(&self) -> Vec<(SocketAddr, Arc<Identity>)> {
        let state = self.lock();
        state.handshakes.identities().map(|(peer, identity)| (peer, identity.clone())).collect()
    }

    /// Returns why the last handshake with `peer` failed, if that was within the last two seconds.
    #[must_use]
    pub fn failure(&self, peer: SocketAddr) -> Option<HandshakeError> {
        self.lock().handshakes.failure(canonical(peer))
    }

    /// Replaces the local identity and the trust. Peers that these do not admit lose their keys at
    /// once. Returns the number of removed peers.
    pub fn replace_negotiator(&self, negotiator: Arc<dyn Negotiator>) -> usize {
        self.change(|_, state| state.handshakes.replace_negotiator(negotiator))
    }

    /// Removes the peers that are no longer admitted because their certificates have expired.
    /// Returns the number of removed peers.
    pub fn recheck(&self) -> usize {
        self.change(|_, state| state.handshakes.recheck())
    }

    /// Returns the handshakes that failed at this end as server since the last call.
    pub(super) fn take_refusals(&self) -> Vec<Refusals> {
        self.lock().handshakes.take_refusals()
    }

    fn lock(&self) -> MutexGuard<'_, SealState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state at the present time, and signals the results to both halves and the
    /// protocol.
    pub(super) fn change<R>(&self, change: impl FnOnce(Duration, &mut SealState) -> R) -> R {
        let mut state = self.lock();
        let result = change(self.clock.now(), &mut state);
        state.sort_out();
        let is_for_transmit =
            !state.sealers.is_empty() || !state.outbox.is_empty() || !state.known.is_empty();
        self.for_transmit.store(is_for_transmit, Ordering::Release);
        self.for_receive.store(!state.openers.is_empty(), Ordering::Release);
        self.for_reports.store(!state.refused.is_empty(), Ordering::Release);
        self.for_protocol.store(!state.sessions.is_empty(), Ordering::Release);
        let due = state.next_due().and_then(|due| u64::try_from(due.as_nanos()).ok());
        self.due.store(due.unwrap_or(NEVER), Ordering::Relaxed);
        result
    }

    /// Runs the timers that are due. Returns the time if the keys' age must be checked.
    pub(super) fn handle_timeout(&self) -> Option<Duration> {
        self.change(|now, state| {
            state.handshakes.handle_timeout(now);
            let is_due = now >= state.next_age_check;
            if is_due {
                state.next_age_check = now + AGE_CHECK;
            }
            is_due.then_some(now)
        })
    }

    /// Returns when the driver's timer is due, since the origin of its clock; `None` if none is.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let due = self.due.load(Ordering::Relaxed);
        (due != NEVER).then(|| Duration::from_nanos(due))
    }

    /// Returns when [`SealHandle::handle_timeout`] is due, on the system's clock.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.next_due().and_then(|due| self.clock.instant(due))
    }

    pub(super) fn is_for_transmit(&self) -> bool {
        self.for_transmit.load(Ordering::Acquire)
    }

    pub(super) fn has_refused(&self) -> bool {
        self.for_reports.load(Ordering::Acquire)
    }

    pub(super) fn is_for_receive(&self) -> bool {
        self.for_receive.load(Ordering::Acquire)
    }

    /// Returns a session that was not passed to the protocol yet.
    pub(super) fn take_session(&self) -> Option<Session> {
        if !self.for_protocol.load(Ordering::Acquire) {
            return None;
        }
        self.change(|now, state| {
            let NewSession { peer, number, server_life } = state.sessions.pop_front()?;
            let life = server_life.map(|stated| PeerLife {
                age: stated.age,
                stated_within: now.saturating_sub(stated.asked),
                is_other: stated.is_other,
            });
            Some(Session { peer, number, life })
        })
    }
}

impl SealState {
    /// Sorts the output of the handshakes into the queues of its receivers.
    fn sort_out(&mut self) {
        while let Some(event) = self.handshakes.poll_event() {
            match event {
                SealEvent::Established(new) => {
                    let (peer, number) = (new.peer, new.sealer.session());
                    let server_life = new.server_life;
                    self.sessions.push_back(NewSession { peer, number, server_life });
                    self.sealers.push_back((new.peer, Change::Set(new.sealer)));
                    self.openers.push_back((new.peer, Change::Set(new.opener)));
                }
                SealEvent::Known { ready, session } => self.known.push_back((ready, session)),
                SealEvent::Removed { peer, session } => {
                    self.sealers.push_back((peer, Change::Remove(session)));
                    self.openers.push_back((peer, Change::Remove(session)));
                }
            }
        }
        while let Some(datagram) = self.handshakes.poll_transmit() {
            self.outbox.push_back(datagram);
        }
    }

    /// Returns when the next timer is due.
    fn next_due(&self) -> Option<Duration> {
        let age_check = (self.handshakes.peers() > 0).then_some(self.next_age_check);
        self.handshakes.next_timeout().into_iter().chain(age_check).min()
    }
}

/// The form of an address that both halves use for a peer.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), v6.port()),
            None => address,
        },
    }
}
