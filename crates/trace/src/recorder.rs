//! What does this process record?
//!
//! One recorder for the process, as its threads work for several endpoints. It is on from the beginning, and records
//! one RPC in [`Sampling::DEFAULT_PERIOD`]. *Freezing* it keeps what the rings hold: nothing is recorded until it is
//! thawed.
//!
//! # Synchronisation
//!
//! What is looked at for each record are two numbers that any thread reads without order (relaxed): a thread that does
//! not see a change yet records a little more, or a little less. All changes are made under one lock.

use crate::clock::{Calibration, ClockReading, ticks};
use crate::event::{self, Event};
use crate::file::FileError;
use crate::peers::{self, Peer, PeerIndex};
use crate::record::{Record, Rpc};
use crate::threads;
use crate::trace::{Frozen, Head, Trace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Whether anything is recorded.
static ON: AtomicBool = AtomicBool::new(true);

/// An RPC is traced if half its id, multiplied by [`MULTIPLIER`], is less than this.
static BELOW: AtomicU64 = AtomicU64::new(Sampling::DEFAULT.below());

/// 2^64 divided by the golden ratio: ids that follow each other are spread evenly, whatever the period is and whatever
/// pattern the calls of a client have (Knuth, The Art of Computer Programming 3, 6.4).
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

static SETTINGS: Mutex<Settings> =
    Mutex::new(Settings { sampling: Sampling::DEFAULT, frozen: None, values: BTreeMap::new() });

/// Told when the trace is frozen.
static FROZEN: Condvar = Condvar::new();

/// Where the clocks stood when recording began.
static START: OnceLock<ClockReading> = OnceLock::new();

#[derive(Debug)]
struct Settings {
    sampling: Sampling,
    frozen: Option<Frozen>,
    values: BTreeMap<&'static str, &'static [&'static str]>,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Nothing.
    Off,
    /// What concerns threads, batches and anomalies, and one RPC in so many.
    Every(NonZeroU32),
    /// Everything.
    All,
}

impl Sampling {
    /// One RPC in so many is traced unless said otherwise.
    pub const DEFAULT_PERIOD: NonZeroU32 = NonZeroU32::new(256).unwrap();

    const DEFAULT: Self = Self::Every(Self::DEFAULT_PERIOD);

    /// One RPC in so many is traced; 0 stands for none.
    #[must_use]
    pub const fn period(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Every(period) => period.get(),
            Self::All => 1,
        }
    }

    /// The share of all products that is traced, of 2^64.
    const fn below(self) -> u64 {
        match self.period() {
            0 => 0,
            period => u64::MAX / period as u64,
        }
    }

    /// Whether the RPC with this id is traced if this is the setting.
    #[must_use]
    pub const fn traces(self, id: u64) -> bool {
        spread(id) < self.below()
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl std::str::FromStr for Sampling {
    type Err = ParseSamplingError;

    /// `off`, `all`, `sampled`, or `sampled=100` (one RPC in 100).
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

/// A text that names no sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected `off`, `sampled`, `all` or `sampled=PERIOD`, such as `sampled=100` for one RPC in 100"
)]
pub struct ParseSamplingError;

/// Why a trace was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FreezeReason {
    /// Somebody asked for it.
    Demand,
    /// An RPC took longer than it may.
    SlowRpc,
    /// A request was sent again from its start, or a peer had been restarted.
    Restart,
    /// A packet was lost, or so late that it was asked for.
    LostPacket,
    /// A peer has frozen its own and asked for ours.
    Peer,
}

impl FreezeReason {
    /// Names, in the order of the numbers in [`Event::Frozen`].
    pub const NAMES: &[&str] = &["demand", "slow_rpc", "restart", "lost_packet", "peer"];

    /// Its name, as in the names of files and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

const fn spread(id: u64) -> u64 {
    (id >> 1).wrapping_mul(MULTIPLIER)
}

fn settings() -> MutexGuard<'static, Settings> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Settings {
    /// Makes the settings known to those who record.
    fn publish(&self) {
        let now = if self.frozen.is_some() { Sampling::Off } else { self.sampling };
        BELOW.store(now.below(), Ordering::Relaxed);
        ON.store(now != Sampling::Off, Ordering::Relaxed);
    }
}

/// Notes where the clocks stand, the first time.
pub(crate) fn begin() {
    START.get_or_init(ClockReading::now);
}

/// Whether anything is recorded.
#[inline]
#[must_use]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether the RPC with this id, as the client writes it, is traced. The same at both ends, if their settings are.
#[inline]
#[must_use]
pub fn is_traced(id: u64) -> bool {
    spread(id) < BELOW.load(Ordering::Relaxed)
}

/// The rule of [`is_traced`], for those who cannot ask each time: an RPC is traced if the product of half its id and
/// [`MULTIPLIER`], modulo 2^64, is less than this. 0 if nothing is recorded.
#[inline]
#[must_use]
pub fn below() -> u64 {
    BELOW.load(Ordering::Relaxed)
}

/// The present time in ticks, to be recorded later; 0, which costs nothing, if nothing is recorded.
#[inline]
#[must_use]
pub fn stamp() -> u64 {
    if is_on() { ticks() } else { 0 }
}

/// Records something that happened to a thread, or to a batch of packets.
#[inline]
pub fn record(event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_thread(ticks(), event, a, b));
    }
}

/// The same, for what happened at another time: before the present, in ticks of [`ticks`].
#[inline]
pub fn record_at(ticks: u64, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_thread(ticks, event, a, b));
    }
}

/// Records something that happened to an RPC. Whether it is traced the caller knows.
#[inline]
pub fn record_rpc(rpc: Rpc, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_rpc(ticks(), rpc, event, a, b));
    }
}

/// The same, for what happened at another time.
#[inline]
pub fn record_rpc_at(ticks: u64, rpc: Rpc, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_rpc(ticks, rpc, event, a, b));
    }
}

/// Records something that a peer did, or that was done to it, and that concerns no RPC.
pub fn record_peer(peer: PeerIndex, event: Event, a: u32, b: u64) {
    if is_on() {
        threads::push(Record::of_peer(ticks(), peer, event, a, b));
    }
}

/// The place of a peer of the endpoint at `endpoint`. Takes a lock and looks it up: to be kept.
pub fn peer(endpoint: SocketAddr, address: SocketAddr) -> PeerIndex {
    peers::index(Peer { endpoint, address })
}

/// Names the values of fields with [`crate::event::Unit::Name`]: what the numbers 0, 1, 2 ... stand for.
pub fn name_values(list: &'static str, names: &'static [&'static str]) {
    settings().values.insert(list, names);
}

/// What is recorded, while the trace is not frozen.
#[must_use]
pub fn sampling() -> Sampling {
    settings().sampling
}

/// Sets what is recorded, by all endpoints of the process. A frozen trace stays frozen.
pub fn set_sampling(sampling: Sampling) {
    if sampling != Sampling::Off {
        begin();
    }
    let mut settings = settings();
    settings.sampling = sampling;
    settings.publish();
}

/// Freezes the trace: keeps what the rings hold. `false` if it was frozen already, or records nothing.
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

/// Waits until the trace is frozen, and not only by what was `handled` already; `None`: it is to stop.
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

/// Has those who wait for a freeze see whether they are to stop.
pub(crate) fn wake_those_who_wait() {
    // Under the lock: whoever has just seen that it goes on is waiting by now.
    let _settings = settings();
    FROZEN.notify_all();
}

/// Goes on recording if nothing has happened since the trace was frozen like this.
pub(crate) fn thaw_if(frozen: Frozen) {
    let mut settings = settings();
    if settings.frozen == Some(frozen) {
        settings.frozen = None;
        settings.publish();
    }
}

/// Goes on recording; what the rings hold is overwritten by and by. `false` if the trace was not frozen.
pub fn thaw() -> bool {
    let mut settings = settings();
    let thawed = settings.frozen.take().is_some();
    settings.publish();
    thawed
}

/// How recording stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What is recorded, while the trace is not frozen.
    pub sampling: Sampling,
    /// When and why it was frozen, if it is.
    pub frozen: Option<Frozen>,
    /// For how long; 0 if it is not.
    pub frozen_for: Duration,
    /// Threads whose records the rings hold, those that have ended lately included.
    pub threads: usize,
    /// Records that the rings hold.
    pub records: u64,
}

/// How recording stands. As [`snapshot`], it waits for up to 20 ms if recording has just begun and is frozen.
#[must_use]
pub fn status() -> Status {
    let (threads, records) = threads::held();
    let (sampling, frozen) = {
        let settings = settings();
        (settings.sampling, settings.frozen)
    };
    let since = |frozen: Frozen| {
        let clock = Calibration::since(*START.get_or_init(ClockReading::now));
        Duration::from_nanos(clock.nanos(clock.end.ticks.saturating_sub(frozen.ticks)))
    };
    Status { sampling, frozen, frozen_for: frozen.map_or(Duration::ZERO, since), threads, records }
}

/// When and why the trace was frozen, if it is.
#[must_use]
pub fn frozen() -> Option<Frozen> {
    settings().frozen
}

/// What the rings hold: the last 16 thousand records of each thread, those that have ended lately included. May be
/// taken at any time, frozen or not; waits for up to 20 ms if recording has just begun, to know the clock's rate.
#[must_use]
pub fn snapshot() -> Trace {
    begin();
    let threads = threads::read();
    let start = *START.get_or_init(ClockReading::now);
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

/// Writes [`snapshot`] into a file, which is there as a whole or not at all.
///
/// # Errors
///
/// [`FileError::Io`]: the file cannot be written.
pub fn dump_to(path: &Path) -> Result<(), FileError> {
    snapshot().save(path)
}
