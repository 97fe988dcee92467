//! The example runs, and its errors are for people.

#[path = "../examples/helloworld/main.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program here is a module")]
mod helloworld;
#[path = "../../../transport/apus/tests/ports/mod.rs"]
mod ports;

#[tokio::test]
async fn server_and_client_in_one_process() {
    let address = ports::free_address().to_string();
    helloworld::run(&["both".to_owned(), address]).await.unwrap();
}

#[tokio::test]
async fn errors_name_what_is_wrong() {
    let error = async |role: &str, address: &str| {
        helloworld::run(&[role.to_owned(), address.to_owned()]).await.unwrap_err().to_string()
    };
    assert!(error("client", "no address").await.starts_with("no address: "));
    assert!(error("clint", "127.0.0.1:1").await.contains("none of server, client, both"));
    let taken = apus_rpc::apus::Endpoint::bind("127.0.0.1:0").unwrap();
    let bound = error("server", &taken.local_addr().to_string()).await;
    assert!(bound.contains("in use"), "{bound}");
}
