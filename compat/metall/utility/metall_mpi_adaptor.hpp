// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One datastore for each rank of an MPI program, in one folder. All calls are collective. What makes going on
// senseless (another number of ranks, a folder that cannot be made) aborts the job, as with Metall.
//
// Thread-safety: one thread of each rank.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <metall/detail/file.hpp>
#include <metall/metall.hpp>
#include <metall/utility/metall_mpi_datastore.hpp>
#include <metall/utility/mpi.hpp>
#include <string>

namespace metall::utility {

class metall_mpi_adaptor {
 public:
  using manager_type = metall::manager;

  metall_mpi_adaptor(open_only_t tag, const std::string& root, const MPI_Comm& comm = MPI_COMM_WORLD)
      : metall_mpi_adaptor(root, comm) {
    require_partitions(root, comm);
    manager_ = std::make_unique<manager_type>(tag, local_dir_path());
  }
  metall_mpi_adaptor(open_read_only_t tag, const std::string& root, const MPI_Comm& comm = MPI_COMM_WORLD)
      : metall_mpi_adaptor(root, comm) {
    require_partitions(root, comm);
    manager_ = std::make_unique<manager_type>(tag, local_dir_path());
  }
  // Nothing may be there, unless `overwrite`: then what as many ranks have made is replaced.
  metall_mpi_adaptor(create_only_t tag, const std::string& root, const MPI_Comm& comm = MPI_COMM_WORLD,
                     bool overwrite = false)
      : metall_mpi_adaptor(root, comm) {
    make_root(root, comm, overwrite);
    manager_ = std::make_unique<manager_type>(tag, local_dir_path());
  }
  metall_mpi_adaptor(create_only_t tag, const std::string& root, std::size_t capacity,
                     const MPI_Comm& comm = MPI_COMM_WORLD, bool overwrite = false)
      : metall_mpi_adaptor(root, comm) {
    make_root(root, comm, overwrite);
    manager_ = std::make_unique<manager_type>(tag, local_dir_path(), capacity);
  }
  metall_mpi_adaptor(const metall_mpi_adaptor&) = delete;
  metall_mpi_adaptor& operator=(const metall_mpi_adaptor&) = delete;
  // When it returns, all ranks have closed theirs.
  ~metall_mpi_adaptor() {
    manager_.reset();
    wait(comm_);
  }

  manager_type& get_local_manager() { return *manager_; }
  const manager_type& get_local_manager() const { return *manager_; }
  std::string root_dir_path() const { return mpi_datastore::make_root_dir_path(root_); }
  std::string local_dir_path() const { return mpi_datastore::make_local_dir_path(root_, rank_in(comm_)); }
  static std::string local_dir_path(const std::string& root, int rank) {
    return mpi_datastore::make_local_dir_path(root, rank);
  }

  // True if all ranks could, as all below.
  bool snapshot(const std::string& to, bool overwrite = false) {
    make_root(to, comm_, overwrite);
    return all(manager_->snapshot(local_dir_path(to, rank_in(comm_))), comm_);
  }
  static bool copy(const std::string& from, const std::string& to, const MPI_Comm& comm = MPI_COMM_WORLD,
                   bool overwrite = false) {
    if (!consistent(from, comm)) return false;
    make_root(to, comm, overwrite);
    const int rank = rank_in(comm);
    return all(manager_type::copy(local_dir_path(from, rank), local_dir_path(to, rank)), comm);
  }
  // True if there is none. Only what this adaptor made with as many ranks is removed.
  static bool remove(const std::string& root, const MPI_Comm& comm = MPI_COMM_WORLD) {
    if (!any(mtlldetail::file_exist(root), comm)) return true;
    if (!all(!mtlldetail::file_exist(root) || mtlldetail::file_exist(root + kMark), comm)) {
      return said(root + " is no datastore of this adaptor");
    }
    if (!has_as_many_partitions(root, comm)) return false;
    const bool mine = manager_type::remove(local_dir_path(root, rank_in(comm)));
    if (!all(mine, comm)) return false;  // somebody has it open
    // One after the other: two that remove the same folder at once get in each other's way.
    bool gone = true;
    for (int turn = 0; turn < mpi::comm_size(comm); ++turn) {
      if (turn == rank_in(comm)) gone = !mtlldetail::file_exist(root) || mtlldetail::remove_file(root);
      wait(comm);
    }
    return all(gone, comm);
  }
  static int partitions(const std::string& root, [[maybe_unused]] const MPI_Comm& comm = MPI_COMM_WORLD) {
    int count = 0;
    std::ifstream file(root + kPartitions);
    if (!(file >> count)) give_up("cannot read " + root + kPartitions, comm);
    return count;
  }
  static bool consistent(const std::string& root, const MPI_Comm& comm = MPI_COMM_WORLD) {
    return all(manager_type::consistent(local_dir_path(root, rank_in(comm))), comm);
  }

 private:
  static constexpr const char* kMark = "/metall_mpi_datastore";
  static constexpr const char* kPartitions = "/metall_mpi_adaptor_partition_size";

  metall_mpi_adaptor(const std::string& root, const MPI_Comm& comm) : comm_(comm), root_(root) {}

  static bool said(const std::string& message) {
    logger::out(logger::level::error, __FILE__, __LINE__, message.c_str());
    return false;
  }
  static void give_up(const std::string& why, const MPI_Comm& comm) {
    said(why);
    ::MPI_Abort(comm, -1);
  }
  static int rank_in(const MPI_Comm& comm) {
    const int rank = mpi::comm_rank(comm);
    if (rank < 0) give_up("there is no rank", comm);
    return rank;
  }
  static void wait(const MPI_Comm& comm) {
    if (!mpi::barrier(comm)) give_up("a barrier failed", comm);
  }
  static bool all(bool mine, const MPI_Comm& comm) {
    const auto [asked, answer] = mpi::global_logical_and(mine, comm);
    if (!asked) give_up("the ranks cannot agree", comm);
    return answer;
  }
  static bool any(bool mine, const MPI_Comm& comm) {
    const auto [asked, answer] = mpi::global_logical_or(mine, comm);
    if (!asked) give_up("the ranks cannot agree", comm);
    return answer;
  }

  static bool has_as_many_partitions(const std::string& root, const MPI_Comm& comm) {
    const int ranks = mpi::comm_size(comm);
    const int made = partitions(root, comm);
    if (all(ranks == made, comm)) return true;
    return said(root + " was made by " + std::to_string(made) + " ranks, and these are " + std::to_string(ranks));
  }
  static void require_partitions(const std::string& root, const MPI_Comm& comm) {
    if (!has_as_many_partitions(root, comm)) ::MPI_Abort(comm, -1);
  }
  // One rank after the other: those on one machine share the folder, and the first makes it.
  static void make_root(const std::string& root, const MPI_Comm& comm, bool overwrite) {
    if (overwrite && !remove(root, comm)) give_up("cannot overwrite " + root, comm);
    if (any(mtlldetail::file_exist(root), comm)) give_up(root + " is there already", comm);
    const int ranks = mpi::comm_size(comm);
    for (int turn = 0; turn < ranks; ++turn) {
      if (turn == rank_in(comm) && !mtlldetail::file_exist(root)) {
        const bool made = mtlldetail::create_directory(root) && mtlldetail::create_file(root + kMark) &&
                          (std::ofstream(root + kPartitions) << ranks).good();
        if (!made) give_up("cannot make " + root, comm);
      }
      wait(comm);
    }
  }

  MPI_Comm comm_;
  std::string root_;
  std::unique_ptr<manager_type> manager_;
};

}  // namespace metall::utility
