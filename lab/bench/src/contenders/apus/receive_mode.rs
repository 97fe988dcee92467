//! Server with a given number of receiving threads, for the measurement of handoffs.
//!
//! The servers of `handoff` echo, and report the engine's counters from the first packet to the
//! last. They receive only requests, and a client disconnects only after its last reply. At the
//! end, every handed-off message has therefore been received.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::thread;

use apus::Engine;

use crate::contenders::contender::Contender;
use apus_measure::exchange::endpoint::{open_client, serve_at};
use apus_measure::exchange::{Path, client, configured, server};
use apus_measure::plan::{Plan, Replies, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Threads that receive the server's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveMode {
    /// One thread that polls the network itself.
    SelfPolling,
    /// This number of threads; a thread of the engine hands requests off to them.
    Receivers(usize),
}

/// Names of the engine's counters in a server's report.
pub mod counters {
    /// Messages that the application received.
    pub const MESSAGES: &str = "messages";
    /// Messages that another thread than their receiver took from the network.
    pub const HANDOFFS: &str = "handoffs";
    /// Wake-ups of threads without a message to receive.
    pub const SPURIOUS_WAKEUPS: &str = "spurious_wakeups";
    /// Passes of the engine's loop that the background poller ran.
    pub const KEEPER_TURNS: &str = "keeper_turns";
}

impl ReceiveMode {
    /// Names by number of receivers.
    const NAMES: [&str; 5] =
        ["self-polling", "receivers=1", "receivers=2", "receivers=3", "receivers=4"];

    /// Returns every mode with up to four receivers.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::SelfPolling].into_iter().chain((1..Self::NAMES.len()).map(Self::Receivers))
    }
}

impl Contender for ReceiveMode {
    fn name(&self) -> &'static str {
        match self {
            Self::SelfPolling => Self::NAMES[0],
            Self::Receivers(count) => Self::NAMES[*count],
        }
    }

    fn settings(&self) -> String {
        match self {
            Self::SelfPolling => "one thread receives, and polls the network itself".to_owned(),
            Self::Receivers(count) => {
                format!("a dedicated engine thread polls the network, receiving threads: {count}")
            }
        }
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let (engine, receivers) = match self {
            Self::SelfPolling => (Engine::Waiters, 1),
            Self::Receivers(count) => (Engine::Dedicated { cpu: None }, *count),
        };
        let endpoint = serve_at(
            configured(&plan.settings, Path::Udp.of(plan)).poll_mode(plan.poll).engine(engine),
            control,
        )?;
        thread::scope(|scope| {
            let start = |_| scope.spawn(|| server::echo(&endpoint));
            let threads: Vec<_> = (0..receivers).map(start).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        let engine = endpoint.metrics().engine;
        let counters = [
            (counters::MESSAGES, engine.messages),
            (counters::HANDOFFS, engine.handoffs),
            (counters::SPURIOUS_WAKEUPS, engine.spurious_wakeups),
            (counters::KEEPER_TURNS, engine.keeper_turns),
        ];
        let counters = counters.map(|(name, count)| (name.to_owned(), count));
        Ok(Side { counters: counters.into(), ..Side::default() })
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let endpoint = open_client(
            configured(&plan.settings, Path::Udp.of(plan)).poll_mode(plan.poll),
            control,
        )?;
        client::many(&endpoint, server, plan, Replies::Echo, control.stop())
    }
}
