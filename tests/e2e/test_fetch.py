# gradstep fetch as a user calls it: exit codes and the one line on stderr, against a server that has only wrong bytes, and none.
import http.server
import os
import subprocess
import tempfile
import threading

PROGRAM = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "gradstep")


class WrongBytes(http.server.BaseHTTPRequestHandler):
    paths = []

    def do_GET(self):
        self.paths.append(self.path)
        body = b"not the file"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


def fetch(folder, *arguments):
    environment = {**os.environ, "no_proxy": "*"}
    return subprocess.run(
        [PROGRAM, "fetch", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def check_refused(result, code, *words):
    assert result.returncode == code, (result.returncode, result.stderr)
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("gradstep: "), result.stderr
    for word in words:
        assert word in result.stderr, (word, result.stderr)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), WrongBytes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/some/mirror"
    with tempfile.TemporaryDirectory() as folder:
        result = fetch(folder, "mnist", "--base-url", url)
        check_refused(result, 5, "train-images-idx3-ubyte.gz", "expected 9912422 bytes, found 12")
        assert WrongBytes.paths == ["/some/mirror/train-images-idx3-ubyte.gz"], WrongBytes.paths
        assert os.listdir(os.path.join(folder, "data", "mnist")) == []

        result = fetch(folder, "cifar10", "--base-url", url + "/", "--data-dir", "elsewhere")
        check_refused(result, 5, "cifar-10-binary.tar.gz")
        assert os.listdir(os.path.join(folder, "elsewhere")) == []

        check_refused(fetch(folder, "mnits"), 2, "mnist")
    server.shutdown()


main()
