//! The addresses of servers, which change over time.

use std::net::SocketAddr;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Addresses of the servers of a service. Dropping this value ends the task that finds them.
#[derive(Debug)]
pub struct Servers {
    pub(super) addresses: watch::Receiver<Vec<SocketAddr>>,
    pub(super) _task: Option<Watching>,
}

/// A task that finds addresses.
#[derive(Debug)]
pub(super) struct Watching(pub(super) JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Servers {
    /// Returns the present addresses.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.borrow().clone()
    }

    /// Waits until the addresses change. Returns `false` if they never will again.
    pub async fn changed(&mut self) -> bool {
        self.addresses.changed().await.is_ok()
    }
}

/// Returns servers at fixed addresses.
#[must_use]
pub fn list(addresses: impl IntoIterator<Item = SocketAddr>) -> Servers {
    let (_, receiver) = watch::channel(addresses.into_iter().collect());
    Servers { addresses: receiver, _task: None }
}

/// Returns servers whose addresses the application sets, for example from its own registry.
#[must_use]
pub const fn watch(addresses: watch::Receiver<Vec<SocketAddr>>) -> Servers {
    Servers { addresses, _task: None }
}
