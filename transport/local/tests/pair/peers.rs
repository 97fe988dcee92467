//! Pairs for tests: both sides in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use apus_local::{
    Connecting, Disconnected, Listener, LocalConfig, LocalLimits, Pair, PairEvent, PeerName,
    ReceiveQuota, RingSizes,
};

/// Returns a name that no other test of any process uses.
pub(crate) fn name() -> PeerName {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    PeerName::new(&format!("test/{}/{next}", std::process::id()))
}

/// Returns a configuration with the smallest rings.
pub(crate) fn small() -> LocalConfig {
    let mut config = LocalConfig::default();
    config.sizes = RingSizes { short: 4096, bulk: 4096 };
    config
}

pub(crate) fn with_limits(limits: LocalLimits) -> LocalConfig {
    let mut config = small();
    config.limits = limits;
    config
}

/// Returns a client's and a server's side.
pub(crate) fn pair(config: &LocalConfig) -> (Pair, Pair) {
    let name = name();
    let listener = Listener::bind(&name, config).unwrap();
    let mut client = Connecting::start(&name, config).unwrap();
    let mut accepting = listener.accept().unwrap().unwrap();
    let server = accepting.advance().unwrap().unwrap();
    (client.advance().unwrap().unwrap(), server)
}

/// A watchdog against hangs, not a measurement.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Returns all events that have arrived.
pub(crate) fn all(pair: &Pair) -> Result<Vec<PairEvent>, Disconnected> {
    let mut events = Vec::new();
    while pair.receive(ReceiveQuota::ALL, &mut events)? > 0 {}
    Ok(events)
}

/// Returns the next event, waiting until there is one.
pub(crate) fn next(pair: &Arc<Pair>) -> Result<PairEvent, Disconnected> {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        let mut events = Vec::new();
        pair.receive(ReceiveQuota { short: 1, chunks: 0 }, &mut events)?;
        if events.is_empty() {
            pair.receive(ReceiveQuota { short: 0, chunks: 1 }, &mut events)?;
        }
        if let Some(event) = events.pop() {
            return Ok(event);
        }
        assert!(pair.wait(Some(Duration::ZERO), Some(deadline)), "no event arrived");
    }
}
