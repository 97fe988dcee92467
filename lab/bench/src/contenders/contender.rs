//! The interface of a contender.

use std::net::SocketAddr;

use apus_measure::error::Error;
use apus_measure::plan::{Plan, Side};
use apus_measure::process::Control;

/// A transport under test, in one experiment: moves messages between a client and a server.
///
/// An experiment calls [`Contender::serve`] in one process and then [`Contender::drive`] in
/// another, each pinned to its core. A contender is set up only in these calls, so that no run
/// inherits state from an earlier run.
pub trait Contender: Sync {
    /// Returns its name in results, like `udp`.
    fn name(&self) -> &'static str;

    /// Returns its settings in words, so that readers can judge the comparison.
    fn settings(&self) -> String;

    /// Returns the reason why it cannot run this plan, if any.
    fn exclusion(&self, _plan: &Plan) -> Option<String> {
        None
    }

    /// Returns whether it takes part only if named explicitly.
    fn is_on_request(&self) -> bool {
        false
    }

    /// Returns whether its messages are encrypted, so that it takes part with `--sealed`.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// Returns whether both sides use all cores, instead of one each.
    fn uses_all_cores(&self) -> bool {
        false
    }

    /// Runs the server: opens it, calls [`Control::ready`], and answers requests until
    /// [`Control::stop`] is requested or the client disconnects.
    ///
    /// # Errors
    ///
    /// A system call fails.
    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error>;

    /// Runs the client: exchanges messages with `server` for the plan's duration.
    ///
    /// # Errors
    ///
    /// A system call fails, or the server returns a wrong answer.
    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error>;
}
