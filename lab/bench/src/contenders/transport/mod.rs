//! Transports under load: many requests and replies of any size between hosts.
//!
//! The traits are small, so that measurements differ only in the transport: the load generator, the
//! messages, the threads and their poll mode are the same for all.
//!
//! ```text
//!   Transport   a configuration, by its name (`apus`, `tcp`, `tcp-pool=4:bbr`, …)
//!     └─ open ─▶ Node         one host's end: echoes requests, and
//!                  └─ connect ─▶ Client    sends requests to peers
//! ```

mod apus;
mod interface;
mod tcp;
mod work;

use apus_testbed::error::{Error, require};

/// How the threads of a node wait.
pub use ::apus::PollMode;

pub use self::apus::Apus;
pub use self::interface::{Client, Completions, Node, NodeOptions, Start, Transport};
pub use self::tcp::serve as serve_streams;
pub use self::tcp::{Connections, Tcp};
pub use self::work::Work;

/// Parameters of apus that can be set by name, and the check of their values.
pub use self::apus::{check_parameters, parameters};

/// Returns the transport of this name: `apus`, `apus-sealed`, `apus-apart`, or `tcp`,
/// `tcp-pool[=N]` or `tcp-per-request`, each of the latter with an optional suffix
/// `:CONGESTION_CONTROL`.
///
/// # Errors
///
/// No transport has this name, or the kernel lacks the congestion control.
pub fn parse(name: &str) -> Result<Box<dyn Transport>, Error> {
    if let Some(apus) = Apus::named(name) {
        return Ok(Box::new(apus));
    }
    let tcp: Option<Tcp> = name.parse().ok();
    let problem = format!(
        "there is no transport `{name}`; try apus, apus-sealed, apus-apart, tcp, tcp-pool=4 or tcp-per-request, and for TCP with \
         another congestion control tcp:bbr"
    );
    require(tcp.is_some(), "transports", &problem)?;
    let tcp = tcp.expect("checked above");
    tcp.check()?;
    Ok(Box::new(tcp))
}
