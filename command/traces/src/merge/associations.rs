//! Associations: matches the peers of one process with the peers of another.
//!
//! A process identifies its peers by address. Two peers are the ends of one association if each has
//! the address recorded by the other, and they share RPC ids, one as client and one as server. An
//! endpoint bound to all addresses of its host is identified by its port; if several match, the
//! number of common RPCs decides.

use apus_trace::{Peer, PeerIndex, Trace};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// Two endpoints that exchange RPCs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// Indices of the processes at both ends. The first end is traced; the second may not be.
    pub ends: [Option<usize>; 2],
    /// Addresses of both ends, as recorded by the process at the first end.
    pub addresses: Peer,
}

/// Association of each process's peers, and the index of the process among its ends.
pub(super) type AssociationIndex = HashMap<(usize, PeerIndex), (usize, usize)>;

/// Ids of RPCs, as client and as server.
#[derive(Default)]
struct RpcIds {
    called: HashSet<u64>,
    served: HashSet<u64>,
}

struct LocalPeer {
    process: usize,
    index: PeerIndex,
    peer: Peer,
    ids: RpcIds,
}

/// Returns all associations and their index by process and peer.
pub(super) fn associations(traces: &[(String, Trace)]) -> (Vec<Association>, AssociationIndex) {
    let all: Vec<LocalPeer> =
        traces.iter().enumerate().flat_map(|(process, (_, trace))| ends(process, trace)).collect();
    let mut pairs = pairs(&all);
    // Most common RPCs first; ties in order.
    pairs.sort_by_key(|&(shared, a, b)| (std::cmp::Reverse(shared), a, b));
    let mut partner = vec![None; all.len()];
    for (_, a, b) in pairs {
        if partner[a].is_none() && partner[b].is_none() {
            (partner[a], partner[b]) = (Some(b), Some(a));
        }
    }
    let (mut associations, mut places) = (Vec::new(), AssociationIndex::new());
    for (place, end) in all.iter().enumerate() {
        if partner[place].is_some_and(|other| other < place) {
            continue;
        }
        let other = partner[place].map(|other: usize| &all[other]);
        places.insert((end.process, end.index), (associations.len(), 0));
        if let Some(other) = other {
            places.insert((other.process, other.index), (associations.len(), 1));
        }
        let processes = [Some(end.process), other.map(|other| other.process)];
        associations.push(Association { ends: processes, addresses: end.peer });
    }
    (associations, places)
}

/// Returns the peers that exchanged RPCs with a process.
fn ends(process: usize, trace: &Trace) -> Vec<LocalPeer> {
    let mut all: HashMap<PeerIndex, RpcIds> = HashMap::new();
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
        // Peers without an entry in the table cannot be distinguished and are skipped.
        let peer = *trace.head.peer(index)?;
        Some(LocalPeer { process, index, peer, ids })
    };
    let mut ends: Vec<LocalPeer> = all.into_iter().filter_map(end).collect();
    ends.sort_by_key(|end| end.index);
    ends
}

/// Returns candidate pairs of ends, with the number of common RPCs.
fn pairs(all: &[LocalPeer]) -> Vec<(usize, usize, usize)> {
    let mut by_ports: HashMap<(u16, u16), Vec<usize>> = HashMap::new();
    for (place, LocalPeer { peer, .. }) in all.iter().enumerate() {
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

/// Returns whether an endpoint may be the endpoint at an address.
fn is_at(endpoint: SocketAddr, address: SocketAddr) -> bool {
    let ip = endpoint.ip().to_canonical();
    let everywhere = match ip {
        IpAddr::V4(ip) => ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_unspecified(),
    };
    endpoint.port() == address.port() && (everywhere || ip == address.ip().to_canonical())
}

impl RpcIds {
    fn shared(&self, other: &Self) -> usize {
        let common = |a: &HashSet<u64>, b: &HashSet<u64>| a.intersection(b).count();
        common(&self.called, &other.served) + common(&self.served, &other.called)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(
        process: usize,
        endpoint: &str,
        address: &str,
        called: &[u64],
        served: &[u64],
    ) -> LocalPeer {
        let ids = RpcIds {
            called: called.iter().copied().collect(),
            served: served.iter().copied().collect(),
        };
        let [endpoint, address] = [endpoint, address].map(|text| text.parse().unwrap());
        LocalPeer { process, index: PeerIndex(1), peer: Peer { endpoint, address }, ids }
    }

    #[test]
    fn mutual_addresses_and_common_rpcs_make_an_association() {
        let client = end(0, "10.0.0.1:999", "10.0.0.2:4000", &[2, 4, 6], &[]);
        let server = end(1, "10.0.0.2:4000", "10.0.0.1:999", &[], &[4, 6, 8]);
        let unrelated = end(2, "10.0.0.3:4000", "10.0.0.1:999", &[], &[2, 4, 6]);
        assert_eq!(pairs(&[client, server, unrelated]), [(2, 0, 1)]);
    }

    #[test]
    fn an_endpoint_on_all_addresses_is_identified_by_its_port() {
        let client = end(0, "[::]:999", "10.0.0.2:4000", &[2], &[]);
        let server = end(1, "0.0.0.0:4000", "[::ffff:10.0.0.1]:999", &[], &[2]);
        assert_eq!(pairs(&[client, server]), [(1, 0, 1)]);
    }

    #[test]
    fn clients_with_equal_ports_are_distinguished_by_their_rpcs() {
        let first = end(0, "0.0.0.0:999", "10.0.0.9:4000", &[2, 4], &[]);
        let second = end(1, "0.0.0.0:999", "10.0.0.9:4000", &[102, 104], &[]);
        let server = end(2, "0.0.0.0:4000", "10.0.0.1:999", &[], &[102, 104]);
        assert_eq!(pairs(&[first, second, server]), [(2, 1, 2)]);
    }

    #[test]
    fn without_common_rpcs_there_is_no_association() {
        let client = end(0, "10.0.0.1:999", "10.0.0.2:4000", &[2], &[]);
        let server = end(1, "10.0.0.2:4000", "10.0.0.1:999", &[2], &[4]);
        assert_eq!(pairs(&[client, server]), [], "both are clients");
    }
}
