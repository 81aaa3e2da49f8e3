// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One datastore a rank: metall_mpi_test FOLDER, under mpirun with any number of ranks. Prints what went wrong.
#include <metall/utility/metall_mpi_adaptor.hpp>
#include <string>

namespace {

using metall::utility::metall_mpi_adaptor;

void must(bool so, const char* what) {
  if (so) return;
  std::cerr << "not so: " << what << std::endl;
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void test(const std::string& folder) {
  const std::string root = folder + "/ranks";
  const int rank = metall::utility::mpi::comm_rank(MPI_COMM_WORLD);
  const int ranks = metall::utility::mpi::comm_size(MPI_COMM_WORLD);
  must(metall::utility::mpi::determine_local_root(MPI_COMM_WORLD) == 0, "all ranks are on this machine");
  {
    metall_mpi_adaptor adaptor(metall::create_only, root, std::size_t{1} << 30, MPI_COMM_WORLD, true);
    must(adaptor.get_local_manager().construct<int>("rank")(rank) != nullptr, "there is room for an int");
    must(adaptor.snapshot(folder + "/snapshot", true), "a snapshot of all");
    must(!metall_mpi_adaptor::consistent(root), "it is open");
  }
  must(metall_mpi_adaptor::consistent(root), "all have closed it");
  must(metall_mpi_adaptor::partitions(root) == ranks, "as many parts as ranks");
  must(metall_mpi_adaptor::copy(root, folder + "/copy", MPI_COMM_WORLD, true), "a copy of all");
  for (const char* const name : {"/ranks", "/snapshot", "/copy"}) {
    const metall_mpi_adaptor adaptor(metall::open_read_only, folder + name);
    must(*adaptor.get_local_manager().find<int>("rank").first == rank, "each finds its own");
  }
  {
    metall_mpi_adaptor adaptor(metall::open_only, root);
    must(!adaptor.get_local_manager().read_only(), "open for writing");
    must(adaptor.local_dir_path() == metall_mpi_adaptor::local_dir_path(root, rank), "where it lies");
  }
  for (const char* const name : {"/ranks", "/snapshot", "/copy"}) {
    must(metall_mpi_adaptor::remove(folder + name), "all is removed");
    must(!metall::mtlldetail::file_exist(folder + name), "nothing is left");
  }
  if (rank == 0) std::cout << "all is as it should be, " << ranks << " ranks" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  must(argc == 2, "one argument");
  test(argv[1]);
  MPI_Finalize();
  return 0;
}
