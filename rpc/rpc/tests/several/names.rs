//! Names of servers.

use apus_rpc::names;
use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::watch;

#[tokio::test]
async fn a_file_is_read_again_and_a_malformed_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("servers");
    let missing = names::file(&path, Duration::from_millis(1)).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    std::fs::write(&path, "10.0.0.7:4000\n").unwrap();
    let mut servers = names::file(&path, Duration::from_millis(1)).unwrap();
    assert_eq!(servers.addresses().len(), 1);
    std::fs::write(&path, "10.0.0.7:4000\n10.0.0.8:4000\n").unwrap();
    // The first change may be the still empty file.
    while servers.addresses().len() != 2 {
        assert!(servers.changed().await);
    }
    std::fs::write(&path, "not an address\n").unwrap();
    std::fs::write(folder.path().join("new"), "10.0.0.9:4000\n").unwrap();
    std::fs::rename(folder.path().join("new"), &path).unwrap();
    while servers.addresses() != ["10.0.0.9:4000".parse().unwrap()] {
        assert!(servers.changed().await);
    }
}

/// Starts a name server with one name, `shop.test`, and these addresses, for a second each. Without
/// addresses it fails, and counts that.
async fn name_server(
    addresses: watch::Receiver<Vec<IpAddr>>,
    failures: watch::Sender<u32>,
) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 1_500];
        while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
            let Ok(question) = Message::from_vec(&buffer[..length]) else { continue };
            let query = question.queries[0].clone();
            let mut answer = Message::response(question.metadata.id, OpCode::Query);
            let known = addresses.borrow().clone();
            answer.metadata.response_code = match query.name().to_string().as_str() {
                _ if known.is_empty() => ResponseCode::ServFail,
                "shop.test." => ResponseCode::NoError,
                _ => ResponseCode::NXDomain,
            };
            if answer.metadata.response_code == ResponseCode::NoError {
                for address in known {
                    let data = match (address, query.query_type()) {
                        (IpAddr::V4(ip), RecordType::A) => RData::A(A(ip)),
                        (IpAddr::V6(ip), RecordType::AAAA) => RData::AAAA(AAAA(ip)),
                        _ => continue,
                    };
                    answer.add_answer(Record::from_rdata(query.name().clone(), 1, data));
                }
            }
            answer.add_query(query);
            let failed = answer.metadata.response_code == ResponseCode::ServFail;
            let _ = socket.send_to(&answer.to_vec().unwrap(), client).await;
            failures.send_modify(|count| *count += u32::from(failed));
        }
    });
    address
}

#[tokio::test]
async fn a_name_is_looked_up_again_and_a_failure_changes_nothing() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let (known, addresses) = watch::channel(vec![ip("10.0.0.8"), ip("10.0.0.7")]);
    let (failures, mut failed) = watch::channel(0);
    let name_server = name_server(addresses, failures).await;
    let missing = names::dns_at(name_server, "other.test.", 4_000).await.unwrap_err().to_string();
    assert!(missing.starts_with("resolve other.test.: "), "{missing}");
    let mut servers = names::dns_at(name_server, "shop.test.", 4_000).await.unwrap();
    let expected: Vec<SocketAddr> =
        ["10.0.0.7:4000", "10.0.0.8:4000"].map(|text| text.parse().unwrap()).into();
    assert_eq!(servers.addresses(), expected, "sorted");
    known.send(Vec::new()).unwrap();
    failed.wait_for(|count| *count > 0).await.unwrap();
    assert_eq!(servers.addresses(), expected);
    known.send(vec![ip("10.0.0.9"), ip("10.0.0.9")]).unwrap();
    assert!(servers.changed().await);
    assert_eq!(servers.addresses(), ["10.0.0.9:4000".parse().unwrap()]);
}

/// The changes that a tower balancer receives.
#[tokio::test]
async fn changes_of_addresses_are_changes_of_services() {
    use tower::discover::Change;
    let at = |port: u16| SocketAddr::from(([10, 0, 0, 7], port));
    let (known, addresses) = watch::channel(vec![at(1), at(2)]);
    let (endpoint, _) = crate::servers(0).await;
    let mut discover = names::Discover::new(endpoint, names::watch(addresses));
    let mut next = async || {
        let change = std::future::poll_fn(|cx| {
            tower::discover::Discover::poll_discover(std::pin::Pin::new(&mut discover), cx)
        });
        match change.await.map(Result::unwrap) {
            Some(Change::Insert(address, channel)) => {
                assert_eq!(channel.peer_addr(), address);
                format!("+{}", address.port())
            }
            Some(Change::Remove(address)) => format!("-{}", address.port()),
            None => "end".into(),
        }
    };
    assert_eq!([next().await, next().await], ["+1", "+2"]);
    known.send(vec![at(2), at(3)]).unwrap();
    assert_eq!([next().await, next().await], ["-1", "+3"]);
    drop(known);
    assert_eq!(next().await, "end");
}
