from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import pytest
import torch

from precedents.runtime.buffers import LEAST_BYTES, BufferPool

WIDTH = LEAST_BYTES  # of a row, in numbers: more than is worth using again


def test_a_buffer_is_used_again_when_nothing_shows_it_any_more() -> None:
    pool, width = BufferPool(), WIDTH
    with pool:
        first = pool.empty((2, width), torch.float32)
        part, where = first[1], first.data_ptr()
        del first
        second = pool.empty((2, width), torch.float32)
        assert second.data_ptr() != where
        part.fill_(3.0)
        assert float(part[-1]) == 3.0
        del part
        assert pool.empty((2, width), torch.float32).data_ptr() == where


def test_buffers_are_given_back_when_nobody_is_with_the_pool() -> None:
    pool = BufferPool()
    with pool:
        pool.empty((2, WIDTH), torch.float32)
        assert len(pool.free)
    assert not len(pool.free)
    pool.empty((2, WIDTH), torch.float32)
    assert not len(pool.free)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_buffer_holds_what_is_written(dtype) -> None:
    matrix = BufferPool().empty((3, WIDTH), dtype)
    assert matrix.shape == (3, WIDTH)
    assert matrix.dtype == dtype
    matrix[2, -1] = 7.0
    assert float(matrix[2, -1]) == 7.0


def test_small_tensors_have_memory_of_their_own() -> None:
    pool = BufferPool()
    with pool:
        pool.empty((2, 3), torch.float32)
        assert not len(pool.free)


def test_a_buffer_that_is_free_in_one_thread_is_not_taken_by_another() -> None:
    pool = BufferPool()
    with pool:
        where = pool.empty((2, WIDTH), torch.float32).data_ptr()
        assert len(pool.free) == 1
        with ThreadPoolExecutor(1) as other:
            assert other.submit(lambda: len(pool.free)).result() == 0
            theirs = other.submit(pool.empty, (2, WIDTH), torch.float32).result()
        assert theirs.data_ptr() != where
        assert pool.empty((2, WIDTH), torch.float32).data_ptr() == where


def test_a_buffer_that_is_freed_on_another_thread_comes_back_to_its_own() -> None:
    pool = BufferPool()
    with pool:
        held = [pool.empty((2, WIDTH), torch.float32)]
        where = held[0].data_ptr()
        thread = Thread(target=held.clear)
        thread.start()
        thread.join()
        assert len(pool.free) == 1
        assert pool.empty((2, WIDTH), torch.float32).data_ptr() == where


def test_what_one_thread_gives_back_the_others_keep() -> None:
    pool = BufferPool()

    def brief() -> None:
        with pool:
            pool.empty((2, WIDTH), torch.float32)

    with pool:
        pool.empty((2, WIDTH), torch.float32)
        thread = Thread(target=brief)
        thread.start()
        thread.join()
        assert len(pool.free) == 1
    assert not len(pool.free)


def test_threads_at_once_do_not_write_into_each_others_buffers() -> None:
    pool, together = BufferPool(), Barrier(4)

    def work(number: int) -> bool:
        right = True
        with pool:
            together.wait()
            for _ in range(20):
                tensor = pool.empty((1, WIDTH), torch.float32).fill_(number)
                right = right and bool((tensor == number).all())
        return right

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
