//! `kv` and `kv-tokio`, in all combinations of client and server.

use crate::program::{ExampleServer, failure, output};

fn stores_and_deletes(server: &str, client: &str) {
    let server = ExampleServer::start(server, &["serve", "127.0.0.1:0"]);
    let address = server.address.as_str();
    let get = [address, "get", "planet"];
    assert!(failure(client, &get).ends_with("no value for planet\n"));
    assert_eq!(output(client, &[address, "put", "planet", "saturn"]), "");
    assert_eq!(output(client, &get), "saturn\n");
    assert_eq!(output(client, &[address, "put", "planet", ""]), "");
    assert_eq!(output(client, &get), "\n");
    assert_eq!(output(client, &[address, "delete", "planet"]), "");
    assert!(failure(client, &get).ends_with("no value for planet\n"));
    assert!(failure(client, &[address, "steal", "planet"]).contains("usage: "));
}

#[test]
fn values_are_stored_and_deleted_by_threads_and_by_tasks() {
    for server in ["kv", "kv-tokio"] {
        for client in ["kv", "kv-tokio"] {
            stores_and_deletes(server, client);
        }
    }
}
