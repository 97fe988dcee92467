//! Which peer of one process is which peer of another?
//!
//! A process knows its peers by their addresses. Two of these belong together if each is at the address that the other
//! one has for it, and they have RPCs with the same ids, one as their client and one as their server. An endpoint that
//! listens on all addresses of its host is known by its port; then the number of common RPCs decides.

use apus_trace::{Peer, PeerIndex, Trace};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// An endpoint of one process and an endpoint that it talks with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The ends: the process that knows of it, and the process at the other end if its trace is there.
    pub ends: [Option<usize>; 2],
    /// The addresses of both ends, as the process of the first end knows them.
    pub addresses: Peer,
}

/// Where each process' peers are: the way, and which end of it the process is.
pub(super) type Ends = HashMap<(usize, PeerIndex), (usize, usize)>;

/// The RPCs of one end, as a client and as a server.
#[derive(Default)]
struct Ids {
    called: HashSet<u64>,
    served: HashSet<u64>,
}

struct End {
    process: usize,
    index: PeerIndex,
    peer: Peer,
    ids: Ids,
}

/// All ways, and who is at which end.
pub(super) fn ways(traces: &[(String, Trace)]) -> (Vec<Way>, Ends) {
    let all: Vec<End> =
        traces.iter().enumerate().flat_map(|(process, (_, trace))| ends(process, trace)).collect();
    let mut pairs = pairs(&all);
    // Most common RPCs first; with as many, the first ones.
    pairs.sort_by_key(|&(shared, a, b)| (std::cmp::Reverse(shared), a, b));
    let mut partner = vec![None; all.len()];
    for (_, a, b) in pairs {
        if partner[a].is_none() && partner[b].is_none() {
            (partner[a], partner[b]) = (Some(b), Some(a));
        }
    }
    let (mut ways, mut places) = (Vec::new(), Ends::new());
    for (place, end) in all.iter().enumerate() {
        if partner[place].is_some_and(|other| other < place) {
            continue;
        }
        let other = partner[place].map(|other: usize| &all[other]);
        places.insert((end.process, end.index), (ways.len(), 0));
        if let Some(other) = other {
            places.insert((other.process, other.index), (ways.len(), 1));
        }
        let processes = [Some(end.process), other.map(|other| other.process)];
        ways.push(Way { ends: processes, addresses: end.peer });
    }
    (ways, places)
}

/// The peers of a process with which it had RPCs.
fn ends(process: usize, trace: &Trace) -> Vec<End> {
    let mut all: HashMap<PeerIndex, Ids> = HashMap::new();
    for (_, record) in trace.records() {
        if let Some(rpc) = record.rpc() {
            let ids = all.entry(rpc.peer()).or_default();
            match rpc.side() {
                apus_trace::Side::Client => ids.called.insert(rpc.id()),
                apus_trace::Side::Server => ids.served.insert(rpc.id()),
            };
        }
    }
    let end = |(index, ids)| {
        // Those for whom there was no room in the table are nobody that could be told apart.
        let peer = *trace.head.peer(index)?;
        Some(End { process, index, peer, ids })
    };
    let mut ends: Vec<End> = all.into_iter().filter_map(end).collect();
    ends.sort_by_key(|end| end.index);
    ends
}

/// Ends that may belong together, with the number of RPCs that they have in common.
fn pairs(all: &[End]) -> Vec<(usize, usize, usize)> {
    let mut by_ports: HashMap<(u16, u16), Vec<usize>> = HashMap::new();
    for (place, End { peer, .. }) in all.iter().enumerate() {
        let ports = (peer.endpoint.port(), peer.address.port());
        by_ports.entry(ports).or_default().push(place);
    }
    let mut pairs = Vec::new();
    for (a, one) in all.iter().enumerate() {
        let ports = (one.peer.address.port(), one.peer.endpoint.port());
        for &b in by_ports.get(&ports).into_iter().flatten().filter(|b| **b > a) {
            let other = &all[b];
            let fits = is_at(one.peer.endpoint, other.peer.address)
                && is_at(other.peer.endpoint, one.peer.address);
            let shared = one.ids.shared(&other.ids);
            if fits && shared > 0 {
                pairs.push((shared, a, b));
            }
        }
    }
    pairs
}

/// Whether an endpoint may be the one at an address.
fn is_at(endpoint: SocketAddr, address: SocketAddr) -> bool {
    let ip = endpoint.ip().to_canonical();
    let everywhere = match ip {
        IpAddr::V4(ip) => ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_unspecified(),
    };
    endpoint.port() == address.port() && (everywhere || ip == address.ip().to_canonical())
}

impl Ids {
    fn shared(&self, other: &Self) -> usize {
        let common = |a: &HashSet<u64>, b: &HashSet<u64>| a.intersection(b).count();
        common(&self.called, &other.served) + common(&self.served, &other.called)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(process: usize, endpoint: &str, address: &str, called: &[u64], served: &[u64]) -> End {
        let ids = Ids {
            called: called.iter().copied().collect(),
            served: served.iter().copied().collect(),
        };
        let [endpoint, address] = [endpoint, address].map(|text| text.parse().unwrap());
        End { process, index: PeerIndex(1), peer: Peer { endpoint, address }, ids }
    }

    #[test]
    fn those_who_name_each_other_and_share_calls_belong_together() {
        let client = end(0, "10.0.0.1:999", "10.0.0.2:4000", &[2, 4, 6], &[]);
        let server = end(1, "10.0.0.2:4000", "10.0.0.1:999", &[], &[4, 6, 8]);
        let stranger = end(2, "10.0.0.3:4000", "10.0.0.1:999", &[], &[2, 4, 6]);
        assert_eq!(pairs(&[client, server, stranger]), [(2, 0, 1)]);
    }

    #[test]
    fn an_endpoint_that_listens_everywhere_is_known_by_its_port() {
        let client = end(0, "[::]:999", "10.0.0.2:4000", &[2], &[]);
        let server = end(1, "0.0.0.0:4000", "[::ffff:10.0.0.1]:999", &[], &[2]);
        assert_eq!(pairs(&[client, server]), [(1, 0, 1)]);
    }

    #[test]
    fn two_clients_of_the_same_port_are_told_apart_by_their_calls() {
        let first = end(0, "0.0.0.0:999", "10.0.0.9:4000", &[2, 4], &[]);
        let second = end(1, "0.0.0.0:999", "10.0.0.9:4000", &[102, 104], &[]);
        let server = end(2, "0.0.0.0:4000", "10.0.0.1:999", &[], &[102, 104]);
        assert_eq!(pairs(&[first, second, server]), [(2, 1, 2)]);
    }

    #[test]
    fn without_a_common_call_nothing_is_known() {
        let client = end(0, "10.0.0.1:999", "10.0.0.2:4000", &[2], &[]);
        let server = end(1, "10.0.0.2:4000", "10.0.0.1:999", &[2], &[4]);
        assert_eq!(pairs(&[client, server]), [], "both are clients");
    }
}
