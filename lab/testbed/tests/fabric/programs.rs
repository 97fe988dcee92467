//! Programs that run in the hosts.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio, exit};
use std::thread;

use apus_testbed::fabric::Fabric;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass, set_socket_send_buffer_size};

/// Argument that makes this program run one of the programs below.
pub(crate) const PROGRAM: &str = "__program";

/// A program in a host. It is killed when the test ends, even after a failed assertion.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// Starts the program.
    pub(crate) fn start(fabric: &Fabric, node: usize, words: &[&str]) -> Self {
        let mut command: Vec<OsString> = fabric.enter(node);
        command.push(env::current_exe().unwrap().into());
        command.push(PROGRAM.into());
        command.extend(words.iter().map(OsString::from));
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Returns the next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended: {:?}", self.child.wait());
        line.trim_end().to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program and returns its first line.
pub(crate) fn run(fabric: &Fabric, node: usize, words: &[&str]) -> String {
    Running::start(fabric, node, words).line()
}

/// Runs one of the programs. Servers print their listening address, and exit at the end of their
/// standard input.
pub(crate) fn main(words: &[&str]) -> ExitCode {
    match words {
        ["echo", address] => {
            end_with_stdin();
            echo(&open(address));
        }
        ["collect", address, count] => collect(&open(address), count.parse().unwrap()),
        ["ask", address] => print(ask(address)),
        ["send", address, kinds @ ..] => send(address.parse().unwrap(), kinds),
        ["sink", address] => sink(address),
        ["source", address, bytes] => {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&vec![7; bytes.parse().unwrap()]).unwrap();
            print("sent");
        }
        ["serve", address] => {
            end_with_stdin();
            serve(address);
        }
        ["call", address, bytes] => {
            let server: SocketAddr = address.parse().unwrap();
            let client = apus::Endpoint::client().unwrap();
            let reply = client.call(server, vec![7; bytes.parse().unwrap()]).unwrap();
            print(reply.len());
        }
        other => panic!("no such program: {other:?}"),
    }
    ExitCode::SUCCESS
}

fn print(what: impl std::fmt::Display) {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{what}").unwrap();
    stdout.flush().unwrap();
}

fn end_with_stdin() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        exit(0);
    });
}

fn open(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    print(socket.local_addr().unwrap());
    socket
}

fn echo(socket: &UdpSocket) {
    let mut bytes = [0; 2000];
    loop {
        let (length, from) = socket.recv_from(&mut bytes).unwrap();
        socket.send_to(&bytes[..length], from).unwrap();
    }
}

/// Prints the first byte of each datagram, in order of arrival.
fn collect(socket: &UdpSocket, count: usize) {
    let mut bytes = [0; 2000];
    let firsts: Vec<_> = (0..count)
        .map(|_| {
            socket.recv(&mut bytes).unwrap();
            bytes[0].to_string()
        })
        .collect();
    print(firsts.join(" "));
}

fn ask(address: &str) -> String {
    let server: SocketAddr = address.parse().unwrap();
    let socket = UdpSocket::bind(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
    socket.connect(server).unwrap();
    socket.send(b"hello").unwrap();
    let mut bytes = [0; 100];
    let length = socket.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Sends datagrams, `LEVELxCOUNTxBYTES` each. The send buffer has space for only a few of them.
fn send(to: SocketAddr, kinds: &[&str]) {
    let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
    set_socket_send_buffer_size(&socket, 20_000).unwrap();
    for kind in kinds {
        let numbers: Vec<usize> = kind.split('x').map(|number| number.parse().unwrap()).collect();
        let [level, count, bytes] = numbers[..] else { panic!("{kind}") };
        let class = (level as u8) << 5;
        match to {
            SocketAddr::V4(_) => set_ip_tos(&socket, class).unwrap(),
            SocketAddr::V6(_) => set_ipv6_tclass(&socket, class.into()).unwrap(),
        }
        for _ in 0..count {
            socket.send_to(&vec![level as u8; bytes], to).unwrap();
        }
    }
    print("sent");
}

fn sink(address: &str) {
    let listener = TcpListener::bind(address).unwrap();
    print(listener.local_addr().unwrap());
    let (mut stream, _) = listener.accept().unwrap();
    print(io::copy(&mut stream, &mut io::sink()).unwrap());
}

fn serve(address: &str) {
    let server = apus::Endpoint::bind(address).unwrap();
    print(server.local_addr());
    while let Ok(request) = server.recv_request() {
        let echo = request.payload().to_vec();
        let _ = request.reply(echo);
    }
}
