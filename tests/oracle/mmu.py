"""mmu: a PE's page table and TLB; from an operand to the runs of memory behind it, and what finding them costs."""
from units import ceil_div
from memory import plus

ADDRESSES = 1 << 64


class Fault(Exception):
    def __init__(self, code, node):
        super().__init__(code)
        self.code, self.node = code, node


class Mmu:
    def __init__(self, topo, node, dma_node, memories):
        part = topo.pe("pe_mmu")
        self.node, self.dma_node, self.memories = node, dma_node, memories
        self.enabled = part.values["enabled"] == "true"
        self.page, self.entries = part.bytes("page_kb"), part.count("tlb_entries")
        self.lookup_ps, self.walk_ps = part.ps("tlb_overhead_ns"), part.ps("walk_ns")
        self.table = {}             # page -> physical address
        self.tlb = []               # pages, least recently used first

    def map(self, va, size, address):
        for i in range(ceil_div(size, self.page)):
            page = va // self.page + i
            if address is None:                                 # an unmap
                self.table.pop(page, None)
            else:
                self.table[page] = plus(address, i * self.page)
            if page in self.tlb:
                self.tlb.remove(page)

    def translate(self, operand, offset, n):
        """-> (ps, runs or a Fault): each run is (memory, offset in it, bytes)."""
        if not (self.enabled and operand.virtual):
            return 0, self.runs([(plus(operand.address, offset), n)])
        va = (operand.address + offset) % ADDRESSES
        pages = range(va // self.page, (va + n - 1) // self.page + 1)
        ps = self.lookup_ps + self.walk_ps * sum([self.misses(page) for page in pages])
        if not all(page in self.table for page in pages):
            return ps, Fault("PAGE_FAULT", self.node)
        ends = [max(va, page * self.page) for page in pages] + [va + n]
        return ps, self.runs([(plus(self.table[page], start % self.page), end - start)
                              for page, start, end in zip(pages, ends, ends[1:])])

    def misses(self, page):
        """Looks a page up, takes it in; whether it had to be walked."""
        missing = page not in self.tlb
        if not missing:
            self.tlb.remove(page)
        elif page not in self.table:
            return True             # there is nothing to take in
        elif len(self.tlb) == self.entries:
            self.tlb.pop(0)
        self.tlb.append(page)
        return missing

    def runs(self, ranges):
        runs = []
        for address, n in ranges:
            found = self.memories.resolve(address, n)
            if not found:
                return Fault("BAD_ADDRESS", self.dma_node)
            memory, offset = found
            if runs and runs[-1][0] is memory and runs[-1][1] + runs[-1][2] == offset:
                runs[-1] = (memory, runs[-1][1], runs[-1][2] + n)
            else:
                runs.append((memory, offset, n))
        return runs
