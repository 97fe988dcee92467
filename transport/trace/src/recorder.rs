//! Recorder: controls what the process records.
//!
//! There is one recorder per process, because its threads work for several endpoints. It is on from
//! the start, and records one RPC in [`Sampling::DEFAULT_PERIOD`]. *Freezing* retains the contents
//! of the rings: recording stops until it is resumed.
//!
//! # Synchronisation
//!
//! Each record checks two numbers that any thread loads relaxed: a thread that does not see a
//! change yet records a little more, or a little less. All changes are made under one lock.

use crate::clock::{self, Calibration, ticks};
use crate::event::{self, Event};
use crate::file::FileError;
pub use crate::freeze_reason::FreezeReason;
use crate::peers::{self, Peer, PeerIndex};
use crate::record::{Record, Rpc};
use crate::threads;
use crate::trace::{Frozen, Head, Trace};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether anything is recorded.
static ON: AtomicBool = AtomicBool::new(true);

/// An RPC is traced if half its id, multiplied by [`MULTIPLIER`], is less than this.
static THRESHOLD: AtomicU64 = AtomicU64::new(Sampling::DEFAULT.threshold());

/// 2^64 divided by the golden ratio: consecutive ids are spread evenly, whatever the period and the
/// pattern of a client's calls (Knuth, The Art of Computer Programming 3, 6.4).
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

static SETTINGS: Mutex<Settings> =
    Mutex::new(Settings { sampling: Sampling::DEFAULT, frozen: None, values: BTreeMap::new() });

/// Notified when the trace is frozen.
static FROZEN: Condvar = Condvar::new();

#[derive(Debug)]
struct Settings {
    sampling: Sampling,
    frozen: Option<Frozen>,
    values: BTreeMap<&'static str, &'static [&'static str]>,
}

/// Extent of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// No events.
    Off,
    /// Events of threads and batches, anomalies, and one RPC in this many.
    Every(NonZeroU32),
    /// Everything.
    All,
}

impl Sampling {
    /// Default period: one RPC in this many is traced.
    pub const DEFAULT_PERIOD: NonZeroU32 = NonZeroU32::new(256).unwrap();

    const DEFAULT: Self = Self::Every(Self::DEFAULT_PERIOD);

    /// Returns the period: one RPC in this many is traced; 0 for none.
    #[must_use]
    pub const fn period(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Every(period) => period.get(),
            Self::All => 1,
        }
    }

    /// Returns the traced share of all products, of 2^64.
    const fn threshold(self) -> u64 {
        match self.period() {
            0 => 0,
            period => u64::MAX / period as u64,
        }
    }

    /// Returns whether the RPC with this id is traced with this setting.
    #[must_use]
    pub const fn traces(self, id: u64) -> bool {
        spread(id) < self.threshold()
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl std::str::FromStr for Sampling {
    type Err = ParseSamplingError;

    /// Parses `off`, `all`, `sampled`, or `sampled=100` (one RPC in 100).
    fn from_str(text: &str) -> Result<Self, ParseSamplingError> {
        match text.split_once('=') {
            None if text == "off" => Ok(Self::Off),
            None if text == "all" => Ok(Self::All),
            None if text == "sampled" => Ok(Self::DEFAULT),
            Some(("sampled", period)) => {
                period.parse().map(Self::Every).map_err(|_| ParseSamplingError)
            }
            _ => Err(ParseSamplingError),
        }
    }
}

impl std::fmt::Display for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Off => f.pad("off"),
            Self::All => f.pad("all"),
            Self::DEFAULT => f.pad("sampled"),
            Self::Every(period) => write!(f, "sampled={period}"),
        }
    }
}

/// The text is not a [`Sampling`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected `off`, `sampled`, `all` or `sampled=PERIOD`, such as `sampled=100` for one RPC in 100"
)]
pub struct ParseSamplingError;

const fn spread(id: u64) -> u64 {
    (id >> 1).wrapping_mul(MULTIPLIER)
}

fn settings() -> MutexGuard<'static, Settings> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Settings {
    /// Publishes the settings to the recording threads.
    fn publish(&self) {
        let now = if self.frozen.is_some() { Sampling::Off } else { self.sampling };
        THRESHOLD.store(now.threshold(), Ordering::Relaxed);
        ON.store(now != Sampling::Off, Ordering::Relaxed);
    }
}

/// Returns whether events are recorded.
#[inline]
#[must_use]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Returns whether the RPC with the client's `id` is traced: equal on both sides, if their settings
/// are equal.
#[inline]
#[must_use]
pub fn is_traced(id: u64) -> bool {
    spread(id) < THRESHOLD.load(Ordering::Relaxed)
}

/// Returns the threshold of [`is_traced`], for callers that apply the rule themselves: an RPC is
/// traced if the product of half its id and [`MULTIPLIER`], modulo 2^64, is less than this. 0 while
/// recording is off.
#[inline]
#[must_use]
pub fn threshold() -> u64 {
    THRESHOLD.load(Ordering::Relaxed)
}

/// Returns the current time in ticks, to be recorded later; 0, at no cost, while recording is off.
#[inline]
#[must_use]
pub fn stamp() -> u64 {
    if is_on() { ticks() } else { 0 }
}

/// Records an event of a thread, or of a batch of packets.
#[inline]
pub fn record(event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_thread(ticks(), event, a, b));
    }
}

/// Records an event of a thread, or of a batch of packets, at an earlier time in ticks of
/// [`ticks`].
#[inline]
pub fn record_at(ticks: u64, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_thread(ticks, event, a, b));
    }
}

/// Records an event of an RPC. The caller has checked that the RPC is traced.
#[inline]
pub fn record_rpc(rpc: Rpc, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_rpc(ticks(), rpc, event, a, b));
    }
}

/// Records an event of an RPC at an earlier time in ticks of [`ticks`].
#[inline]
pub fn record_rpc_at(ticks: u64, rpc: Rpc, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_rpc(ticks, rpc, event, a, b));
    }
}

/// Records an event of a peer that belongs to no RPC.
pub fn record_peer(peer: PeerIndex, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_peer(ticks(), peer, event, a, b));
    }
}

/// Returns the index of a peer of the endpoint at `endpoint`. Takes a lock and does a lookup, so
/// callers cache the index.
pub fn peer(endpoint: SocketAddr, address: SocketAddr) -> PeerIndex {
    peers::index(Peer { endpoint, address })
}

/// Returns the peer with this index; `None` if the index stands for no peer or for several. Takes a
/// lock.
#[must_use]
pub fn peer_at(index: PeerIndex) -> Option<Peer> {
    peers::at(index)
}

/// Sets the names of the numbers 0, 1, 2 ... in fields with [`crate::event::Unit::Name`].
pub fn name_values(list: &'static str, names: &'static [&'static str]) {
    settings().values.insert(list, names);
}

/// Returns the extent of the recording while the trace is not frozen.
#[must_use]
pub fn sampling() -> Sampling {
    settings().sampling
}

/// Sets the extent of the recording, for all endpoints of the process. A frozen trace stays frozen.
pub fn set_sampling(sampling: Sampling) {
    if sampling != Sampling::Off {
        clock::recording_start();
    }
    let mut settings = settings();
    settings.sampling = sampling;
    settings.publish();
}

/// Freezes the trace: retains the contents of the rings. Returns `false` if it was frozen already,
/// or recording is off.
pub fn freeze(reason: FreezeReason) -> bool {
    let mut settings = settings();
    if settings.frozen.is_some() || settings.sampling == Sampling::Off {
        return false;
    }
    let ticks = ticks();
    record_at(ticks, Event::Frozen, reason as u32, 0);
    settings.frozen = Some(Frozen { reason, ticks });
    settings.publish();
    FROZEN.notify_all();
    true
}

/// Waits for a freeze other than `handled`; returns `None` when `stop` is set.
pub(crate) fn wait_for_freeze(handled: Option<Frozen>, stop: &AtomicBool) -> Option<Frozen> {
    let mut settings = settings();
    loop {
        if settings.frozen.is_some() && settings.frozen != handled {
            return settings.frozen;
        }
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        settings = FROZEN.wait(settings).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Makes threads in [`wait_for_freeze`] check whether they must stop.
pub(crate) fn notify_waiters() {
    // Under the lock: a thread that has just checked `stop` is waiting by now.
    let _settings = settings();
    FROZEN.notify_all();
}

/// Resumes recording if the trace is still frozen by this freeze.
pub(crate) fn resume_if(frozen: Frozen) {
    let mut settings = settings();
    if settings.frozen == Some(frozen) {
        settings.frozen = None;
        settings.publish();
    }
}

/// Resumes recording, which overwrites the rings. Returns `false` if the trace was
/// not frozen.
pub fn resume() -> bool {
    let mut settings = settings();
    let was_frozen = settings.frozen.take().is_some();
    settings.publish();
    was_frozen
}

/// State of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Extent of the recording while the trace is not frozen.
    pub sampling: Sampling,
    /// Time and reason of the freeze, if the trace is frozen.
    pub frozen: Option<Frozen>,
    /// Time since the freeze; 0 if the trace is not frozen.
    pub frozen_for: Duration,
    /// Threads with records in the rings, including threads that have ended recently.
    pub threads: usize,
    /// Records in the rings.
    pub records: u64,
}

/// Returns the state of the recording. Waits for up to 20 ms if recording has just started and is
/// frozen, as [`snapshot`] does.
#[must_use]
pub fn status() -> Status {
    let (threads, records) = threads::retained();
    let (sampling, frozen) = {
        let settings = settings();
        (settings.sampling, settings.frozen)
    };
    let since = |frozen: Frozen| {
        let clock = Calibration::since(clock::recording_start());
        Duration::from_nanos(clock.nanos(clock.end.ticks.saturating_sub(frozen.ticks)))
    };
    Status { sampling, frozen, frozen_for: frozen.map_or(Duration::ZERO, since), threads, records }
}

/// Returns time and reason of the freeze, if the trace is frozen.
#[must_use]
pub fn frozen() -> Option<Frozen> {
    settings().frozen
}

/// Returns the contents of the rings: the last 16 thousand records of each thread, including
/// threads that have ended recently. May be called at any time, frozen or not. Waits for up to 20
/// ms if recording has just started, to determine the clock's rate.
#[must_use]
pub fn snapshot() -> Trace {
    let start = clock::recording_start();
    let threads = threads::read();
    let clock = Calibration::since(start);
    let Settings { sampling, frozen, ref values } = *settings();
    let names = [
        ("restart", event::RESTARTS),
        ("sleep", event::SLEEPS),
        ("work", event::WORKS),
        ("freeze_reason", FreezeReason::NAMES),
    ];
    let values = values.iter().map(|(list, names)| (*list, *names)).chain(names);
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let head = Head {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        program: std::env::args_os().next().map_or_else(String::new, |program| {
            Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned()
        }),
        pid: std::process::id(),
        clock,
        period: sampling.period(),
        frozen,
        peers: peers::all(),
        events: Event::ALL.iter().map(|event| (*event as u16, event.name().to_owned())).collect(),
        values: values.map(|(list, names)| (list.to_owned(), owned(names))).collect(),
    };
    Trace { head, threads }
}

/// Writes [`snapshot`] into a file, which is complete or absent at any time.
///
/// # Errors
///
/// [`FileError::Io`] if the file cannot be written.
pub fn dump_to(path: &Path) -> Result<(), FileError> {
    snapshot().save(path)
}
