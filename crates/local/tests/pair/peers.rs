//! How do two sides meet in one process, in a test?

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use apus_local::{
    Connecting, Disconnected, Listener, LocalConfig, LocalLimits, Pair, PairEvent, PeerName,
    ReceiveQuota, RingSizes,
};

/// A name that no other test of any process uses.
pub(crate) fn name() -> PeerName {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    PeerName::new(&format!("test/{}/{next}", std::process::id()))
}

/// The smallest rings.
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

/// A client's and a server's side.
pub(crate) fn pair(config: &LocalConfig) -> (Pair, Pair) {
    let name = name();
    let listener = Listener::bind(&name, config).unwrap();
    let mut client = Connecting::start(&name, config).unwrap();
    let mut accepting = listener.accept().unwrap().unwrap();
    let server = accepting.advance().unwrap().unwrap();
    (client.advance().unwrap().unwrap(), server)
}

/// A watchdog against hangs, and no measure.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// All that has arrived.
pub(crate) fn all(pair: &Pair) -> Result<Vec<PairEvent>, Disconnected> {
    let mut events = Vec::new();
    while pair.receive(ReceiveQuota::ALL, &mut events)? > 0 {}
    Ok(events)
}

/// The next event, which is waited for.
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
        assert!(pair.wait(Some(Duration::ZERO), Some(deadline)), "nothing came");
    }
}
