//! The servers of a balancer, and the choice among them.

use super::server::BalancedServer;
use crate::client::Channel;
use crate::message::Attempts;
use apus::tokio::Endpoint;
use std::net::SocketAddr;
use std::sync::Arc;

/// The servers at one point in time.
#[derive(Debug, Default)]
pub(super) struct Members {
    servers: Vec<Arc<BalancedServer>>,
}

impl Members {
    /// Returns the members at these addresses. Members that stay keep their state.
    pub(super) fn renewed(&self, endpoint: &Endpoint, addresses: &[SocketAddr]) -> Self {
        let servers = addresses.iter().map(|address| {
            let known = self.servers.iter().find(|server| server.address() == *address);
            known.cloned().unwrap_or_else(|| {
                Arc::new(BalancedServer::new(Channel::new(endpoint.clone(), *address)))
            })
        });
        Self { servers: servers.collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.servers.len()
    }

    pub(super) fn available(&self) -> usize {
        self.servers.iter().filter(|server| !server.is_ejected()).count()
    }

    /// Draws two servers at random and returns the cheaper one. Draws from the servers that are not
    /// ejected and had no attempt; if there are none, from the servers without an attempt; if there
    /// are none, from all servers, unless the call must not go to the same server again.
    pub(super) fn choose(
        &self,
        attempts: Option<&Attempts>,
        only_elsewhere: bool,
    ) -> Option<Arc<BalancedServer>> {
        let tried = |server: &BalancedServer| {
            attempts.is_some_and(|attempts| attempts.contains(server.address()))
        };
        self.cheaper_of_two(|server| !server.is_ejected() && !tried(server))
            .or_else(|| {
                (!only_elsewhere).then(|| self.cheaper_of_two(|server| !server.is_ejected()))?
            })
            .or_else(|| (!only_elsewhere).then(|| self.cheaper_of_two(|server| !tried(server)))?)
            .or_else(|| (!only_elsewhere).then(|| self.cheaper_of_two(|_| true))?)
    }

    fn cheaper_of_two(
        &self,
        eligible: impl Fn(&BalancedServer) -> bool,
    ) -> Option<Arc<BalancedServer>> {
        let count = self.servers.iter().filter(|server| eligible(server)).count();
        let nth = |n| self.servers.iter().filter(|server| eligible(server)).nth(n);
        if count < 2 {
            return nth(0).cloned();
        }
        let first = fastrand::usize(..count);
        let second = (first + fastrand::usize(1..count)) % count;
        let (first, second) = (nth(first)?, nth(second)?);
        Some(if first.cost() <= second.cost() { first.clone() } else { second.clone() })
    }
}
