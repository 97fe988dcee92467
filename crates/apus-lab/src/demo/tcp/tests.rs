//! Situation: the demo's TCP contenders without the demo around them. Every byte comes back, on
//! however many connections, and a peer that misbehaves is an error.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use apus::Poll;
use serde_json::{Value, json};

use super::{Contender, Tcp};
use crate::error::Error;
use crate::process::{Agent, Control, Host, Task};

/// A server in a thread.
fn serve(poll: Poll) -> (Agent, SocketAddr) {
    fn runner(task: &Task, control: &mut Control) -> Result<Value, Error> {
        let poll = serde_json::from_value(task.details.clone()).unwrap();
        Tcp::PerRequest.serve(poll, control).map(|()| json!(null))
    }
    let name = "server".to_owned();
    let task = Task { name, core: None, bind: None, job: String::new(), details: json!(poll) };
    let mut agent = Host::Threads(runner).start(task).unwrap();
    let address = agent.address().unwrap();
    (agent, address)
}

/// A frame whose bytes differ from their neighbours.
fn frame(length: usize) -> Vec<u8> {
    let mut frame = (length as u32).to_be_bytes().to_vec();
    frame.extend((0..length).map(|at| (at * 31 + at / 256) as u8));
    frame
}

#[test]
fn servers_send_each_message_back_on_its_connection() {
    for poll in [Poll::Spin, Poll::Hybrid(Duration::from_micros(1)), Poll::Block] {
        let (server, address) = serve(poll);
        let clients: Vec<_> = (0..4)
            .map(|number| {
                thread::spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    let sizes = [1, 100, 70_000, 3, 1_000_000, 65_536 - 4, 200_000 + number];
                    let sent: Vec<u8> = sizes.iter().flat_map(|&size| frame(size)).collect();
                    let mut writer = stream.try_clone().unwrap();
                    let copy = sent.clone();
                    let writer = thread::spawn(move || writer.write_all(&copy).unwrap());
                    let mut received = vec![0; sent.len()];
                    stream.read_exact(&mut received).unwrap();
                    writer.join().unwrap();
                    assert!(received == sent);
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        server.stop::<()>().unwrap();
    }
}

#[test]
fn clients_complete_each_request_once() {
    for contender in [Tcp::OneConnection, Tcp::PerRequest] {
        let (server, address) = serve(Poll::Spin);
        let mut client = contender.connect(address, 4).unwrap();
        // More rounds than connections, short and long messages at the same time.
        for round in 0..10 {
            let sizes = [1, 5000, 300_000 + round, 64];
            for (id, size) in (0..).zip(sizes) {
                client.start(id, size).unwrap();
            }
            let mut done = Vec::new();
            while done.len() < sizes.len() {
                client.poll(&mut done).unwrap();
            }
            done.sort_unstable();
            assert_eq!(done, [0, 1, 2, 3], "{}", contender.name());
        }
        server.stop::<()>().unwrap();
    }
}

/// What a client says of a server that reads one request and then does `answer`.
fn error_of(answer: fn(TcpStream)) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 4 + 100]).unwrap();
        answer(stream);
    });
    let mut client = Tcp::OneConnection.connect(address, 1).unwrap();
    client.start(0, 100).unwrap();
    let mut done = Vec::new();
    let error = loop {
        if let Err(error) = client.poll(&mut done) {
            break error.to_string();
        }
    };
    drop(client);
    server.join().unwrap();
    assert!(done.is_empty());
    error.replace(&address.to_string(), "SERVER")
}

#[test]
fn a_server_that_closes_a_connection_is_an_error() {
    assert_eq!(error_of(drop), "SERVER closed a connection");
}

#[test]
fn a_reply_of_another_length_is_an_error() {
    let error = error_of(|mut stream| {
        stream.write_all(&frame(99)).unwrap();
        // Until the client has gone: it must not see the end of the connection first.
        let _ = stream.read(&mut [0; 1]);
    });
    assert_eq!(error, "SERVER answered 100 bytes with 99");
}
